"""The checkpoint folder: saved and loaded without loss, refused when damaged, foreign or newer."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from safetensors.torch import load_file, save_file
from transformers import AutoConfig

from cards import catalogue_of
from dialeval.checkpoints import find
from dialeval.checkpoints.catalogue import CATALOGUE, checkpoints
from dialeval.checkpoints.config import CheckpointConfig
from dialeval.papers.density import Density, DensityNetwork
from dialeval.papers.learned import percentile
from refusals import refused
from small_checkpoints import ROWS, changed, small_network


@pytest.fixture
def folder(tiny_encoder: Path, tmp_path: Path) -> Path:
    small_network("density", tiny_encoder).save_pretrained(tmp_path / "checkpoint", card="# A card\n")
    return tmp_path / "checkpoint"


@pytest.mark.parametrize("tuning", ["lora", "layers", "full", "frozen"])
def test_saving_and_loading_changes_no_score(tiny_encoder: Path, tmp_path: Path, tuning: str) -> None:
    network = small_network("density", tiny_encoder, tuning)
    ids = torch.tensor([[3, 6, 7, 4, 8, 9, 4]])
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids), "token_type_ids": torch.zeros_like(ids)}
    with torch.no_grad():
        before = network(**inputs)
        network.save_pretrained(tmp_path / "one")
        loaded = DensityNetwork.from_pretrained(tmp_path / "one")
        assert torch.allclose(loaded(**inputs), before, atol=1e-5)
    first, second = Density(tmp_path / "one"), Density(tmp_path / "one")
    assert (first.score(**ROWS).values == second.score(**ROWS).values).all()


@pytest.mark.parametrize(("tuning", "name"), [("lora", "adapter"), ("layers", find.LAYERS)])
def test_what_was_tuned_may_be_an_embedded_checkpoint_s(
    tiny_encoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tuning: str, name: str
) -> None:
    """It is looked for by its digest."""
    folder = tmp_path / "heads"
    small_network("density", tiny_encoder, tuning).save_pretrained(folder)
    own = Density(folder)
    (tmp_path / "embedded" / "judge").mkdir(parents=True)
    (folder / name).rename(tmp_path / "embedded" / "judge" / name)
    assert name in refused(find.CheckpointError, "fetch it again", Density, folder)
    monkeypatch.setattr(find, "WEIGHTS", tmp_path / "embedded")
    shared = Density(folder)
    assert (shared.score(**ROWS).values == own.score(**ROWS).values).all()
    # One set of weights has one name, wherever its layers lie.
    assert shared.signature() == own.signature()
    assert shared.network.encoder_id == own.network.encoder_id
    assert shared.network.encoder_id.split()[-1] == CheckpointConfig.read(folder).encoder.layers


def test_layers_are_kept_without_embeddings_and_begun_from(tiny_encoder: Path, tmp_path: Path) -> None:
    network, folder = small_network("density", tiny_encoder, "layers"), tmp_path / "heads"
    with torch.no_grad():
        for parameter in network.encoder.encoder.parameters():
            parameter.add_(0.25)
    network.save_pretrained(folder)
    own = Density(folder)
    layers = folder / find.LAYERS
    assert not any("embeddings" in name for name in load_file(layers))
    base = small_network("density", tiny_encoder, "frozen").encoder
    for name in ("encoder.layer.0.output.LayerNorm.bias", "encoder.layer.0.output.dense.weight"):
        moved = own.network.encoder.get_parameter(name) - base.get_parameter(name)
        assert torch.allclose(moved, torch.tensor(0.25), atol=2e-3)  # half a step of 127
    # Saved again it is the same to the last bit.
    own.network.save_pretrained(tmp_path / "again")
    assert find.file_sha256(tmp_path / "again" / find.LAYERS) == find.file_sha256(layers)
    begun = DensityNetwork.create(CheckpointConfig.read(folder), start=folder)
    for one, other in zip(begun.encoder.parameters(), own.network.encoder.parameters(), strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize("damage", ["cut", "no number", "another shape", "one less", "a link", "another digest"])
def test_damaged_layers_are_refused(tiny_encoder: Path, tmp_path: Path, damage: str) -> None:
    small_network("density", tiny_encoder, "layers").save_pretrained(tmp_path / "one")
    path = tmp_path / "one" / find.LAYERS
    stored = load_file(path)
    name = next(iter(stored))
    config = path.with_name("config.json")
    known = CheckpointConfig.read(path.parent).encoder.layers
    if damage == "another digest":
        stored[name] += 1
        save_file(stored, path)
    elif damage == "cut":
        path.write_bytes(path.read_bytes()[:-1])
    elif damage == "a link":
        path.rename(tmp_path / find.LAYERS)
        path.symlink_to(tmp_path / find.LAYERS)
    else:
        if damage == "one less":
            del stored[name]
        else:
            stored[name] = stored[name] * torch.nan if damage == "no number" else stored[name][:-1].contiguous()
        save_file(stored, path)
    if damage != "another digest":  # whoever sends a file can name its digest, too
        config.write_text(config.read_text().replace(str(known), find.file_sha256(path)))
    refused(find.CheckpointError, find.LAYERS, Density, tmp_path / "one")


def test_the_folder_holds_data_only(folder: Path) -> None:
    endings = {path.suffix for path in folder.rglob("*") if path.is_file()}
    assert endings <= {".json", ".safetensors", ".md", ".txt"}
    assert (folder / "adapter" / "adapter_model.safetensors").is_file()
    assert (folder / "README.md").read_text() == "# A card\n"
    assert str(folder.parent) not in (folder / "adapter" / "adapter_config.json").read_text()


def test_without_a_network_the_hub_s_client_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would try again for most of a minute. Port 9 of the loopback interface: nothing answers there."""
    import huggingface_hub

    for name in ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setattr(huggingface_hub, "snapshot_download", lambda *_, **__: pytest.fail("asked"))
    refused(find.CheckpointError, "nobody/nothing", find.find_checkpoint, "nobody/nothing", default="x")
    refused(find.CheckpointError, "''", find.find_checkpoint, "", default="x")


@pytest.mark.encoder
def test_the_base_encoder_is_the_one_file() -> None:
    found = find.find_encoder(find.BASE_ENCODER)
    assert (found.folder / "model.safetensors").stat().st_size > 90_000_000
    refused(find.CheckpointError, "model", find.find_encoder, find.BASE_ENCODER, sha256="0" * 64)


def test_human_percentile(folder: Path) -> None:
    metric = Density(folder)
    native = metric.score(**ROWS)
    shares = metric.score(**ROWS, scale="human_percentile")
    assert ((shares.values >= 0) & (shares.values <= 1)).all()
    assert shares.signature["scale"].startswith("human_percentile@")
    assert (np.argsort(native.values) == np.argsort(shares.values)).all() or len(set(shares.values)) < 2
    classifier = Density(folder, scoring="classifier")
    refused(ValueError, "quantiles", lambda: classifier.score(**ROWS, scale="human_percentile"))
    curves = {"human": [0.0, 1.0], "random": [0.0, 1.0]}
    changed(folder / "config.json", "quantiles", metric.quantile_key, to=curves)
    other = Density(folder)
    assert other.score(**ROWS, scale="human_percentile").signature != shares.signature
    assert other.score(**ROWS).signature == native.signature


def test_a_scale_without_quantiles_is_refused_before_anything_is_encoded(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed(folder / "config.json", "quantiles", to={})
    metric = Density(folder)
    monkeypatch.setattr(metric.encoder, "encode", lambda *_, **__: pytest.fail("encoded"))
    for judge in (metric.score, lambda *rows, **options: metric.score_dialogues([["hello", "hi"]], **options)):
        refused(ValueError, "quantiles", judge, ["fine"], [["how are you"]], scale="human_percentile")
        refused(ValueError, "stars", judge, ["fine"], [["how are you"]], scale="stars")  # type: ignore[arg-type]


def test_a_network_begins_only_from_an_adapter_over_its_own_encoder(tiny_encoder: Path, folder: Path) -> None:
    """The sha256 decides where both know theirs, else the name."""
    path = folder / "config.json"
    changed(path, "encoder", "sha256", to=find.file_sha256(tiny_encoder / "model.safetensors"))
    config = CheckpointConfig.read(folder)
    begun = DensityNetwork.create(config, start=folder)
    stored = DensityNetwork.from_pretrained(folder, trainable=True)
    for one, other in zip(begun.encoder.parameters(), stored.encoder.parameters(), strict=True):
        assert torch.equal(one, other)
    changed(path, "encoder", "sha256", to="0" * 64)
    refused(find.CheckpointError, "trained over", DensityNetwork.create, config, start=folder)
    changed(path, "encoder", "sha256", to=None)
    changed(path, "encoder", "id", to="someone/other")
    refused(find.CheckpointError, "someone/other", DensityNetwork.create, config, start=folder)
    changed(path, "encoder", "tuning", to="frozen")
    refused(find.CheckpointError, "neither adapter nor layers", DensityNetwork.create, config, start=folder)


@pytest.mark.parametrize(
    ("curve", "shares"),
    [
        ([0.0, 0.0, 0.0, 1.0, 2.0], {-1.0: 0.0, 0.0: 0.0, 0.5: 0.625, 1.0: 0.75, 2.0: 1.0, 3.0: 1.0}),
        ([0.0, 1.0, 1.0, 1.0, 2.0], {0.0: 0.0, 0.5: 0.125, 1.0: 0.25, 1.5: 0.875, 2.0: 1.0}),
        ([0.0, 1.0, 2.0, 2.0, 2.0], {0.0: 0.0, 1.0: 0.25, 1.5: 0.375, 2.0: 0.5, 3.0: 1.0}),
        ([1.0, 1.0, 1.0, 1.0, 1.0], {0.0: 0.0, 1.0: 0.0, 2.0: 1.0}),
        ([1.0, 2.0, 3.0, 4.0, 5.0], {0.0: 0.0, 1.0: 0.0, 3.0: 0.5, 9.0: 1.0}),
    ],
    ids=["low end", "middle", "high end", "all", "none"],
)
def test_a_percentile_among_equals_counts_those_that_are_lower(curve: list[float], shares: dict[float, float]) -> None:
    assert percentile(np.array(list(shares)), np.array(curve)).tolist() == list(shares.values())


def test_the_embedded_checkpoints_are_small() -> None:
    folders = find.embedded_checkpoints()
    sizes = {name: sum(path.stat().st_size for path in folder.rglob("*.*")) for name, folder in folders.items()}
    assert sizes.pop("judge-large") <= 30_000_000  # adapters of an encoder of 110 million weights
    assert max(sizes.values()) <= 18_000_000  # a judge: the layers of an encoder, a million runs of words
    assert sum(sizes.values()) <= 55_000_000  # with that adapter, what a wheel may hold


@pytest.mark.parametrize("tuning", ["frozen", "layers"])
def test_a_config_names_layers_and_turns_only_where_it_has_them(
    tiny_encoder: Path, tmp_path: Path, tuning: str
) -> None:
    network = small_network("density", tiny_encoder, tuning)
    turns = 3 if tuning == "layers" else None
    network.config = replace(network.config, layout=replace(network.config.layout, turns=turns))
    network.save_pretrained(tmp_path)
    raw = json.loads((tmp_path / "config.json").read_text())
    assert ("layers" in raw["encoder"], "turns" in raw["layout"]) == (tuning == "layers", tuning == "layers")
    assert CheckpointConfig.read(tmp_path).layout.turns == turns
    assert Density(tmp_path).signature().get("turns") == (None if turns is None else "3")


def test_embeddings_that_are_not_saved_are_not_trained(tiny_encoder: Path, tmp_path: Path) -> None:
    small_network("density", tiny_encoder, "layers").save_pretrained(tmp_path)
    network = DensityNetwork.from_pretrained(tmp_path, trainable=True)
    trained = {name for name, one in network.encoder.named_parameters() if one.requires_grad}
    assert trained == {name for name, _ in network.encoder.named_parameters() if not name.startswith("embeddings.")}


def test_the_embedded_heads_share_the_encoder_of_the_judge_and_what_it_reads() -> None:
    embedded = find.embedded_checkpoints()
    judge, *heads = (CheckpointConfig.read(embedded[name]) for name in ("judge", "deb", "density", "quantidce"))
    for one in heads:
        assert (one.encoder, one.layout) == (judge.encoder, judge.layout), one.name


def test_another_layout_has_another_name(folder: Path) -> None:
    """What moves values is in the signature, and the layout of a checkpoint does."""
    names = {str(Density(folder).signature())}
    for key, value in (("response_budget", 5), ("separator", " | "), ("segment_ids", True)):
        changed(folder / "config.json", "layout", key, to=value)
        names.add(str(Density(folder).signature()))
    assert len(names) == 4


def test_a_checkpoint_is_found_by_its_name_and_by_that_of_its_folder() -> None:
    for name, listed in checkpoints().items():
        assert find.find_checkpoint(name, default="") == find.find_checkpoint(listed.folder, default="")
    defaults = {name for name, listed in checkpoints().items() if name == listed.approach}
    assert defaults == {"judge", "density", "deb", "cmn", "quantidce"}
    assert find.find_checkpoint(None, default="judge").folder.name == "judge-minilm"


def test_the_catalogue_is_what_the_folders_of_weights_say() -> None:
    assert catalogue_of(find.WEIGHTS, CATALOGUE) == CATALOGUE.read_text("utf-8"), "run: python training/cards.py"


def test_a_new_folder_gets_the_name_of_its_approach_unless_that_is_taken(folder: Path, tmp_path: Path) -> None:
    catalogue = tmp_path / "catalogue.yaml"
    catalogue.write_text("# Kept.\nencoders: {}\ncheckpoints:\n")
    for name in ("a", "b"):
        shutil.copytree(folder, tmp_path / "weights" / name)
        catalogue.write_text(catalogue_of(tmp_path / "weights", catalogue))
    assert catalogue.read_text().startswith("# Kept.\nencoders: {}\ncheckpoints:\n  density:\n")
    listed = yaml.safe_load(catalogue.read_text())["checkpoints"]
    assert {name: entry["folder"] for name, entry in listed.items()} == {"density": "a", "b": "b"}
    assert listed["b"]["files"]["model.safetensors"] == find.file_sha256(folder / "model.safetensors")


# --- one full model instead of an adapter or layers -----------------------------------------------


@pytest.fixture(scope="module", params=["lora", "layers"])
def folders(
    request: pytest.FixtureRequest, tiny_encoder: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, Path]:
    """A tuned network, and what was merged from it; both from the same network."""
    home = tmp_path_factory.mktemp("merged")
    small_network("density", tiny_encoder, request.param).save_pretrained(home / "adapter", card="# A card\n")
    DensityNetwork.from_pretrained(home / "adapter").save_pretrained(home / "full", merged=True, card="# Full\n")
    return home / "adapter", home / "full"


def test_it_scores_the_same_in_float32(folders: tuple[Path, Path]) -> None:
    adapter, full = folders
    after = Density(full).score(**ROWS)
    assert after.values == pytest.approx(Density(adapter).score(**ROWS).values, abs=1e-5)
    assert after.signature["checkpoint"].startswith("tiny-merged@")
    assert not any((full / part).exists() for part in ("adapter", find.LAYERS))
    assert (full / "README.md").read_text() == "# Full\n"
    described = AutoConfig.for_model(**json.loads((full / "encoder.json").read_text()))
    assert described.hidden_size == Density(full).network.encoder.config.hidden_size
    state = load_file(full / "model.safetensors")
    assert all(tensor.dtype is torch.float32 for name, tensor in state.items() if name.startswith("encoder."))


def test_missing_weights_and_damaged_configurations_are_refused(folders: tuple[Path, Path], tmp_path: Path) -> None:
    shutil.copytree(folders[1], tmp_path / "full")
    path = tmp_path / "full" / "model.safetensors"
    state = load_file(path)
    del state["encoder.encoder.layer.0.attention.self.query.weight"]
    save_file(state, path)
    refused(find.CheckpointError, "query.weight", Density, tmp_path / "full")
    (tmp_path / "full" / "encoder.json").write_text('{"model_type": "no such model"}')
    refused(find.CheckpointError, "encoder.json", Density, tmp_path / "full")
