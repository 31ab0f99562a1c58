"""Teach transformers' `AutoModel` our checkpoints, without importing transformers before the user does.

`import dialeval` must stay quick, and `AutoModel.from_pretrained("dialeval/density-minilm")` must
work after it. So a finder waits for the module that defines `AutoModel` and registers right after
it was imported.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

_AUTO_MODULE = "transformers.models.auto.modeling_auto"


def install() -> None:
    """Register now if `AutoModel` is there already, else as soon as it is."""
    if _AUTO_MODULE in sys.modules:
        _register()
    elif not any(isinstance(finder, _AutoModelFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _AutoModelFinder())


class _AutoModelFinder(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != _AUTO_MODULE:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is not None and spec.loader is not None:
            spec.loader = _ThenRegister(spec.loader)
        return spec


class _ThenRegister(Loader):
    """The module's own loader, and a registration after it."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        _register()


def _register() -> None:
    from transformers import AutoConfig, AutoModel, PretrainedConfig

    class DialevalConfig(PretrainedConfig):  # type: ignore[no-untyped-call]
        """Lets transformers recognise `model_type: dialeval`; the contents are read by `CheckpointConfig`."""

        model_type = "dialeval"

    class DialevalModel:
        """Loads the network of whichever approach the checkpoint belongs to."""

        config_class = DialevalConfig

        @classmethod
        def from_pretrained(cls, source: Any, *args: Any, **options: Any) -> Any:
            from dialeval.approaches import network_class
            from dialeval.weights.config import CheckpointConfig
            from dialeval.weights.find import find_checkpoint

            located = find_checkpoint(source, default=str(source), revision=options.get("revision"))
            network = network_class(CheckpointConfig.read(located.folder).approach)
            wanted = {key: options[key] for key in ("revision", "device", "dtype", "trainable") if options.get(key)}
            return network.from_pretrained(source, **wanted)

    AutoConfig.register("dialeval", DialevalConfig, exist_ok=True)
    AutoModel.register(DialevalConfig, DialevalModel, exist_ok=True)
