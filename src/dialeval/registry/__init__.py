"""Which metrics there are, and how they are loaded.

The registry holds import paths, not classes, so that listing the metrics costs no import of torch. Installed packages
add metrics by an entry point of the group `dialeval.metrics`, and `python:package.module:name` names one on the spot.
"""

from __future__ import annotations

import difflib
import importlib
import inspect
import math
import warnings
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from numbers import Integral
from typing import Any, overload

from dialeval.checkpoints.find import embedded_checkpoints
from dialeval.core.exchange import a_kind
from dialeval.core.specs import Declared, declared_in, did_you_mean, split_options
from dialeval.io.files import read_yaml
from dialeval.registry.functions import metric_class_of
from dialeval.registry.interface import Metric, Scale
from dialeval.registry.suite import Suite, share_encoders
from dialeval.version import how_to_install


@dataclass(frozen=True)
class RegisteredMetric:
    """Where a metric's class lives, and the options that make it this metric."""

    target: str
    options: Mapping[str, Any] = field(default_factory=dict)
    #: The extra of dialeval that installs what the metric imports.
    extra: str | None = None
    #: Of a metric that another installed package brings: which one.
    package: str | None = None
    #: Of a function named on the spot: what its user declares.
    declared: Declared | None = None


#: Installed packages name their metrics here.
ENTRY_POINTS = "dialeval.metrics"
#: How a metric is named that is in no registry.
PYTHON = "python:"

#: name -> class. The papers' approaches and the judge first, then baselines; `plugins/dialeval-baselines` adds others.
REGISTRY: dict[str, RegisteredMetric] = {
    "density": RegisteredMetric("dialeval.papers.density:Density"),
    "fbd": RegisteredMetric("dialeval.papers.fbd:Fbd"),
    "prd": RegisteredMetric("dialeval.papers.prd:Prd"),
    "cmn": RegisteredMetric("dialeval.papers.cmn:Cmn"),
    "deb": RegisteredMetric("dialeval.papers.deb:Deb"),
    "quantidce": RegisteredMetric("dialeval.papers.quantidce:QuantiDce"),
    "judge": RegisteredMetric("dialeval.judge.metric:Judge"),
    "bleu1": RegisteredMetric("dialeval.baselines.overlap:Bleu1", extra="agreement"),
    "bleu2": RegisteredMetric("dialeval.baselines.overlap:Bleu2", extra="agreement"),
    "bleu3": RegisteredMetric("dialeval.baselines.overlap:Bleu3", extra="agreement"),
    "bleu4": RegisteredMetric("dialeval.baselines.overlap:Bleu4", extra="agreement"),
    "deltableu": RegisteredMetric("dialeval.baselines.overlap:DeltaBleu", extra="agreement"),
    "rouge1": RegisteredMetric("dialeval.baselines.overlap:Rouge1", extra="agreement"),
    "rouge2": RegisteredMetric("dialeval.baselines.overlap:Rouge2", extra="agreement"),
    "rougeL": RegisteredMetric("dialeval.baselines.overlap:RougeL", extra="agreement"),
    "meteor": RegisteredMetric("dialeval.baselines.overlap:Meteor", extra="agreement"),
    "embedding_average": RegisteredMetric("dialeval.baselines.embedding:EmbeddingAverage", extra="agreement"),
    "embedding_greedy": RegisteredMetric("dialeval.baselines.embedding:EmbeddingGreedy", extra="agreement"),
    "embedding_extrema": RegisteredMetric("dialeval.baselines.embedding:EmbeddingExtrema", extra="agreement"),
    "bertscore": RegisteredMetric("dialeval.baselines.bertscore:BertScore", extra="agreement"),
    "sentence_cosine": RegisteredMetric("dialeval.baselines.sentence:SentenceCosine", extra="agreement"),
    "mlm_likelihood": RegisteredMetric("dialeval.baselines.likelihood:MaskedLikelihood", extra="agreement"),
    "lm_likelihood": RegisteredMetric("dialeval.baselines.likelihood:CausalLikelihood", extra="agreement"),
    "fed": RegisteredMetric("dialeval.baselines.likelihood:FollowUpLikelihood", extra="agreement"),
    "llm": RegisteredMetric("dialeval.llm.llm_judge:LlmJudge", extra="llm"),
}


def available() -> list[str]:
    """The names that `load` understands, without importing any of the metrics."""
    find_plugins()
    return list(REGISTRY)


@cache
def find_plugins() -> None:
    """Add the metrics of other installed packages; none of them takes the name of one that is there."""
    from importlib.metadata import entry_points

    for point in entry_points(group=ENTRY_POINTS):
        package = point.dist.name if point.dist is not None else point.value
        if point.name in REGISTRY:
            taken = REGISTRY[point.name].package or "dialeval"
            if taken == package:
                continue
            warnings.warn(
                f"{package} provides a metric {point.name!r}, but {taken} already has one of that name", stacklevel=3
            )
        else:
            REGISTRY[point.name] = RegisteredMetric(point.value, package=package)


def register(name: str, target: str, *, extra: str | None = None, **options: Any) -> None:
    """Add a metric of your own: `register("mine", "my_package.my_module:MyMetric")`."""
    REGISTRY[name] = RegisteredMetric(target, options, extra)


def registered(spec: str) -> str:
    """The name under which a metric is known from now on; `python:package.module:name?name=…` is added to the registry.

    Raises ValueError where the name is that of another metric.
    """
    if not spec.startswith(PYTHON):
        return spec
    target, options = split_options(spec.removeprefix(PYTHON))
    declared, preset = declared_in(options)
    named_class = metric_class_of(target, declared)
    if unknown := next((option for option in preset if not _takes(named_class, option)), None):
        raise ValueError(f"{spec}: there is no option {unknown!r}; leave it out")
    name = declared.name or named_class.info.name
    entry = RegisteredMetric(target, preset, declared=declared)
    if REGISTRY.get(name, entry) != entry:
        raise ValueError(f"another metric is named {name!r}; rename this one: {spec}?name=…")
    REGISTRY[name] = entry
    return name


def metric_class(name: str) -> tuple[type[Metric], Mapping[str, Any]]:
    """The class behind a name and its preset options; unknown names get a suggestion.

    `llm:judge.yaml` is the metric `llm` with the options in that file.
    """
    name, colon, file = name.partition(":") if isinstance(name, str) and not name.startswith(PYTHON) else (name, "", "")
    if colon:
        loaded_class, preset = metric_class(name)
        options = read_yaml(file, "options")
        if unknown := [option for option in options if not _takes(loaded_class, str(option))]:
            raise ValueError(f"options {file}: {name} has no option {unknown[0]!r}")
        return loaded_class, {**preset, **options}
    if isinstance(name, str) and name.startswith(PYTHON):
        name = registered(name)
    if name not in REGISTRY:
        find_plugins()
    if name not in REGISTRY:
        raise ValueError(f"there is no metric {name!r}; {did_you_mean(name, REGISTRY)}")
    entry = REGISTRY[name]
    if entry.declared is not None:
        return metric_class_of(entry.target, entry.declared), entry.options
    module, _, attribute = entry.target.partition(":")
    try:
        loaded = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if entry.package is not None:
            raise ModuleNotFoundError(
                f"metric {name!r} of the package {entry.package} needs {error.name}; install that", name=error.name
            ) from None
        if entry.extra is None or (error.name or "").startswith("dialeval"):
            raise
        raise ModuleNotFoundError(
            f"metric {name!r} needs {error.name}; install it with: {how_to_install(entry.extra)}", name=error.name
        ) from None
    loaded_class = getattr(loaded, attribute)
    if not (isinstance(loaded_class, type) and issubclass(loaded_class, Metric)):
        raise ValueError(
            f"metric {name!r} of {entry.package or 'the registry'}: {entry.target} is not a subclass of Metric"
        )
    return loaded_class, entry.options


@overload
def load(name: str, **options: Any) -> Metric: ...


@overload
def load(name: Sequence[str], **options: Any) -> Suite: ...


def load(name: str | Sequence[str], **options: Any) -> Metric | Suite:
    """Load one metric by name, or several as a `Suite` that shares encoders.

    Learned metrics take `checkpoint=` (a folder, a Hub id, or None for the embedded one),
    `device=`, `dtype=` (`float32`, `bfloat16`, `int8` or `auto`) and `batch_tokens=`; what else a metric takes is in
    its class.
    """
    if not isinstance(name, str):
        given: object = name  # whatever a caller without types passes
        if not isinstance(given, Sequence) or isinstance(given, bytes | bytearray):
            raise TypeError(f"a metric is {a_kind(given)}; pass its name, or a list of names")
        if odd := [each for each in given if not isinstance(each, str)]:
            raise TypeError(f"a metric is {a_kind(odd[0])}; pass names")
        return _load_suite(list(dict.fromkeys(name)), **options)
    chosen_class, preset = metric_class(name)
    if unknown := next((option for option in options if not _takes(chosen_class, option)), None):
        names = [option for option in _options(chosen_class)[0] if option not in preset]
        close = difflib.get_close_matches(unknown, names, n=1)
        hint = f" (did you mean {close[0]!r}?)" if close else ""
        raise TypeError(f"{name} has no option {unknown!r}{hint}; its options are: {', '.join(names) or 'none'}")
    chosen = {**preset, **options}
    check_given(chosen_class, chosen)
    return chosen_class(**chosen)


def check_given(chosen_class: type[Metric], options: Mapping[str, Any]) -> None:
    """Refuse what is no number one can count with, or holds several where one belongs; what else a metric's own options
    may be is for its class to say.
    """
    kinds = _options(chosen_class)[0]
    for option, value in options.items():
        is_count = option in ("batch_tokens", "max_length")
        if is_count and not isinstance(value, Integral | float | str | None):
            raise ValueError(f"{option} is {a_kind(value)}; give a whole number")
        if option in ("checkpoint", "revision", "device", "dtype") and not isinstance(value, Hashable):
            raise ValueError(f"{option} is {a_kind(value)}; pass one name")
        whole = is_count or kinds.get(option) in (int, "int", "int | None")
        if (isinstance(value, float) and (whole or not math.isfinite(value))) or (is_count and isinstance(value, str)):
            raise ValueError(f"{option} is {value!r}; give a {'whole ' if whole else ''}number")
        if is_count and isinstance(value, int) and value < 1:
            raise ValueError(f"{option} is {value}; it must be positive")


def check_options(
    names: Sequence[str], options: Mapping[str, Any], checkpoints: Mapping[str, str], scale: Scale = "native"
) -> None:
    """Refuse what no metric takes, before any time is spent."""
    classes = {name: metric_class(name)[0] for name in names}
    for option in options:
        if not any(_takes(chosen_class, option) for chosen_class in classes.values()):
            raise ValueError(f"{', '.join(names)}: there is no option {option!r}; leave it out")
    for name in checkpoints:
        if not _takes(classes[name], "checkpoint"):
            raise ValueError(f"{name} has no weights, so it takes no checkpoint")
    if not any(scale in chosen_class.scales for chosen_class in classes.values()):
        raise ValueError(f"{', '.join(names)}: there is no scale {scale!r}; leave it out")


def load_metrics(names: Sequence[str], options: Mapping[str, Any], checkpoints: Mapping[str, str]) -> dict[str, Metric]:
    """Load metrics by name; each gets those options that it takes. `check_options` refuses what none of them takes."""
    loaded = {}
    for name in names:
        taken = {option: value for option, value in options.items() if _takes(metric_class(name)[0], option)}
        weights = {"checkpoint": checkpoints[name]} if name in checkpoints else {}
        loaded[name] = load(name, **taken, **weights)
    if len(loaded) > 1:
        share_encoders(loaded.values())
    return loaded


def _takes(chosen_class: type[Metric], option: str) -> bool:
    """Whether a class names an option, or passes what it does not name on to a base that takes it."""
    names, takes_any = _options(chosen_class)
    return takes_any or option in names


def _options(chosen_class: type[Metric]) -> tuple[dict[str, Any], bool]:
    """The options that a class and the bases it passes them on to name, and of what type they are; and whether it
    takes any other, too."""
    names: dict[str, Any] = {}
    for base in chosen_class.__mro__[:-1]:
        if "__init__" not in vars(base):
            continue
        _, *parameters = inspect.signature(vars(base)["__init__"]).parameters.values()
        variable = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
        names = {option.name: option.annotation for option in parameters if option.kind not in variable} | names
        if not any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters):
            return names, False
    return names, bool(names)


#: The approaches in the order in which people meet them: of replies, then of systems.
APPROACHES = ("judge", "density", "deb", "cmn", "quantidce", "fbd", "prd")


def ready_approaches() -> list[str]:
    """Those that can score without a download: training-free, or with all their checkpoints in the package."""
    embedded = embedded_checkpoints().keys()
    return [name for name in APPROACHES if metric_class(name)[0].checkpoints_by_default() <= embedded]


def _load_suite(names: Sequence[str], *, checkpoints: Mapping[str, str] | None = None, **options: Any) -> Suite:
    if not names:
        raise ValueError("no metrics were given; pass at least one")
    check_options(names, options, checkpoints or {})
    return Suite(load_metrics(names, options, checkpoints or {}))
