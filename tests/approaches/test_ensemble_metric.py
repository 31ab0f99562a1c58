"""The ensemble as a metric: members over tiny checkpoints, percentiles averaged, references optional."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import dialeval
from dialeval.approaches.ensemble import Ensemble, EnsembleRecipe
from dialeval.studies.ensemble_report import write_weights
from dialeval.studies.ensemble_study import EnsembleOutcome, Study
from small_checkpoints import small_checkpoint

RESPONSES = ["i am fine thanks", "fish and chips", "the weather is nice today", "no"]
CONTEXTS = [["hello there", "how are you"], ["what do you like to eat"], ["shall we go"], ["yes please", "sorry"]]
WEIGHING = '{"form": "x", "members": {"a": {"metric": "deb", "options": {}, "weight": %s}}, "fitted_on": []}'
REFERENCES = [["i am fine"], [], ["a walk please", " "], [""]]


@pytest.fixture(scope="module")
def folders(tiny_encoder: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    home = tmp_path_factory.mktemp("members")
    return {name: str(small_checkpoint(name, tiny_encoder, home / name)) for name in ("density", "deb", "cmn")}


def weights_file(folder: Path, folders: dict[str, str], **weights: float) -> Path:
    members = {
        name: {"metric": name, "options": {"checkpoint": folders[name]}, "weight": weight}
        for name, weight in weights.items()
    }
    path = folder / "weights.json"
    path.write_text(json.dumps({"form": "weighted_percentiles", "members": members, "fitted_on": ["convai2_grade"]}))
    return path


@pytest.fixture(scope="module")
def ensemble(folders, tmp_path_factory) -> Ensemble:
    path = weights_file(tmp_path_factory.mktemp("ensemble"), folders, density=1, deb=2, cmn=5)
    return dialeval.load("ensemble", weights=path, device="cpu")


@pytest.fixture(scope="module")
def alone(folders) -> dict[str, np.ndarray]:
    """Percentiles of each member by itself; CMN of the rows that have a reference."""
    options = {"scale": "human_percentile"}
    found = {
        name: dialeval.load(name, checkpoint=folders[name], device="cpu").score(RESPONSES, CONTEXTS, **options).values
        for name in ("density", "deb")
    }
    cmn = dialeval.load("cmn", checkpoint=folders["cmn"], device="cpu")
    rows = [RESPONSES[0], RESPONSES[2]], [CONTEXTS[0], CONTEXTS[2]], [["i am fine"], ["a walk please"]]
    found["cmn"] = np.full(4, np.nan)
    found["cmn"][[0, 2]] = cmn.score(*rows, **options).values
    return found


def test_a_value_is_the_weighted_mean_of_the_members_percentiles(ensemble, alone):
    scores = ensemble.score(RESPONSES, CONTEXTS, REFERENCES)
    two, three = (alone["density"] + 2 * alone["deb"]) / 3, (alone["density"] + 2 * alone["deb"] + 5 * alone["cmn"]) / 8
    expected = [three[0], two[1], three[2], two[3]]
    assert scores.values == pytest.approx(expected, abs=1e-5)
    assert scores.aggregate == pytest.approx(np.mean(expected), abs=1e-5)
    shown = scores.details["human_percentiles"]
    assert shown["deb"] == pytest.approx(alone["deb"], abs=1e-5)
    assert np.isnan(shown["cmn"]).tolist() == [False, True, False, True]


def test_without_references_the_others_judge(ensemble, alone):
    scores = ensemble.score(RESPONSES, CONTEXTS)
    assert scores.values == pytest.approx((alone["density"] + 2 * alone["deb"]) / 3, abs=1e-5)


def test_a_row_depends_on_itself_alone(ensemble):
    together = ensemble.score(RESPONSES, CONTEXTS, REFERENCES).values
    turned = ensemble.score(RESPONSES[::-1], CONTEXTS[::-1], REFERENCES[::-1]).values[::-1]
    single = [
        ensemble.score([response], [context], [reference]).values[0]
        for response, context, reference in zip(RESPONSES, CONTEXTS, REFERENCES, strict=True)
    ]
    assert together == pytest.approx(turned, abs=1e-5)
    assert together == pytest.approx(single, abs=1e-5)


def test_signature_names_every_member_with_its_weights(ensemble, folders):
    shown = ensemble.signature()
    assert list(shown)[:5] == ["metric", "form", "density", "deb", "cmn"]
    assert shown["deb"].startswith("2*[checkpoint=deb-tiny@")
    assert "scoring=mahalanobis" in shown["density"]
    assert folders["deb"] not in str(shown)


def test_contamination_is_that_of_members_and_fit(ensemble):
    assert "convai2_grade" in ensemble.contaminated_by


def test_members_share_tokenizer_and_two_scorings_of_one_checkpoint_share_an_encoder(folders, tmp_path):
    path = weights_file(tmp_path, folders, density=1, deb=1)
    raw = json.loads(path.read_text())
    options = {"checkpoint": folders["density"], "scoring": "euclidean"}
    raw["members"]["other"] = {"metric": "density", "options": options, "weight": 1}
    path.write_text(json.dumps(raw))
    found = dialeval.load("ensemble", weights=path, device="cpu")
    one, other = found.members["density"], found.members["other"]
    assert one.encoder is other.encoder
    assert one.network is other.network
    assert (one.scoring, other.scoring) == ("mahalanobis", "euclidean")
    assert found.members["deb"].encoder is not one.encoder


def test_a_member_without_weight_is_not_loaded(folders, tmp_path):
    found = dialeval.load("ensemble", weights=weights_file(tmp_path, folders, density=1, deb=0), device="cpu")
    assert list(found.members) == ["density"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is no file of weights"),
        ("[]", "is no file of weights"),
        ('{"form": "x", "members": {}, "fitted_on": []}', "one is positive"),
        (
            '{"form": "x", "members": {"a": {"metric": "deb", "options": {}, "weight": -1}}, "fitted_on": []}',
            "negative",
        ),
        (
            '{"form": "x", "members": {"a": {"metric": "deb", "options": {}, "weight": NaN}}, "fitted_on": []}',
            "negative",
        ),
    ],
)
def test_a_broken_file_of_weights_is_refused_in_a_sentence(tmp_path, text, message):
    path = tmp_path / "weights.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        dialeval.load("ensemble", weights=path)


def test_a_missing_file_and_an_unfit_member_are_told(tmp_path):
    with pytest.raises(ValueError, match="cannot be read"):
        dialeval.load("ensemble", weights=tmp_path / "none.json")
    path = tmp_path / "weights.json"
    members = {"bleu1": {"metric": "bleu1", "options": {}, "weight": 1}}
    path.write_text(json.dumps({"form": "x", "members": members, "fitted_on": []}))
    with pytest.raises(ValueError, match="bleu1 has no human percentiles"):
        dialeval.load("ensemble", weights=path)


def study_with(*, percentile_mean: bool) -> Study:
    from dialeval.statistics.bootstrap import Interval
    from dialeval.studies.ensemble_study import MEAN, Agreement

    found = Study(("deb", "two"), ("deb", "two"))
    found.weights["all"] = {"deb": 0.75, "two": 0.25}
    found.verdicts = [EnsembleOutcome("percentile_mean", percentile_mean, 0.01, "deb")]
    found.agreements = [Agreement("percentile_mean", MEAN, 0.5, Interval(0.4, 0.6, 10), 7)]
    return found


def test_weights_are_written_only_for_a_form_that_won(tmp_path):
    specs = {"deb": "deb", "two": "density?scoring=classifier&name=two"}
    path = tmp_path / "weights.json"
    assert not write_weights(study_with(percentile_mean=False), path, specs=specs, command="dialeval ensemble")
    assert not path.exists()
    assert write_weights(study_with(percentile_mean=True), path, specs=specs, command="dialeval ensemble")
    one, two = EnsembleRecipe.read(path).members
    assert (one.metric, one.options, one.weight) == ("deb", {}, 0.5)
    assert (two.name, two.metric, two.options, two.weight) == ("two", "density", {"scoring": "classifier"}, 0.5)


def test_without_a_file_of_weights_there_is_no_ensemble():
    with pytest.raises(ValueError, match="so none ships; pass weights=FILE"):
        dialeval.load("ensemble")
