"""Where weights come from: embedded in the package, a folder, the Hugging Face cache, or the Hub.

Local places are always looked at first, so that nothing waits for a network that is not there.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dialeval.checkpoints import CheckpointError as CheckpointError
from dialeval.checkpoints.catalogue import base_encoders, checkpoint_named, checkpoints
from dialeval.checkpoints.packages import from_packages
from dialeval.io.files import first_line as first_line
from dialeval.io.files import is_reachable, parse_json
from dialeval.version import how_to_install

WEIGHTS = Path(__file__).parents[1] / "weights"

#: The encoder of the small checkpoints, which sentence embeddings use, too.
BASE_ENCODER = "sentence-transformers/all-MiniLM-L6-v2"

#: Where the catalogue's checkpoints are on the Hub.
ORG = "dialeval"

#: Nothing but data is ever fetched: no pickles, no Python files.
DATA_FILES = ["*.json", "*.safetensors", "*.txt", "*.model", "README.md"]


@dataclass(frozen=True)
class Located:
    """A folder with weights, where it was found, and its commit if it came from the Hub."""

    folder: Path
    origin: str
    revision: str | None = None


def find_encoder(name: str = BASE_ENCODER, *, revision: str | None = None, sha256: str | None = None) -> Located:
    """The folder of a base encoder: a path, the Hugging Face cache, packages that hold it, then the Hub.

    With `sha256` the weights must be exactly that file; those that the catalogue lists are always checked.
    """
    listed = base_encoders().get(name)
    if listed is not None:
        sha256 = sha256 or listed.sha256
    located = _local_folder(name) or cached(name, revision) or packaged(name)
    if located is None:
        hint = f"install it with: {how_to_install(listed.extra)}" if listed else "pass a folder"
        located = _from_hub(name, revision, hint=f"; download it once with `hf download {name}`, or {hint}")
    if sha256 is not None:
        if not (located.folder / "model.safetensors").is_file():
            raise CheckpointError(f"{located.folder} has no model.safetensors; pickled weights are not loaded")
        _check_files(located.folder, {"model.safetensors": sha256})
    return located


def find_checkpoint(source: str | Path | None, *, default: str, revision: str | None = None) -> Located:
    """The folder of a checkpoint: one that the catalogue lists, by default that of an approach; a folder; a Hub id."""
    name = str(default if source is None else source)
    if (listed := checkpoint_named(name)) is not None:
        if listed.id in embedded_checkpoints():
            return Located(WEIGHTS / listed.folder, "embedded")
        located = _on_hub(f"{ORG}/{listed.folder}", revision)
        _check_files(located.folder, listed.files if revision is None else {})
        return located
    if name.strip() and (local := _local_folder(name)) is not None:  # an empty name is no folder, not even this one
        return local
    if name.count("/") != 1 or name.startswith((".", "/", "~")):
        known = ", ".join(checkpoints())
        raise CheckpointError(f"there is no checkpoint at {name!r}; pass a folder, a Hub id, or one of: {known}")
    return _on_hub(name, revision)


def embedded_checkpoints() -> dict[str, Path]:
    """Of the catalogue's checkpoints those that travel inside the package, with their folders."""
    folders = {name: WEIGHTS / listed.folder for name, listed in checkpoints().items()}
    return {name: folder for name, folder in folders.items() if (folder / "config.json").is_file()}


#: All of an encoder but its embeddings, if its layers were tuned and these stayed those of the base.
LAYERS = "layers.safetensors"
#: Adapters beside the base's layers, if these are what was tuned.
ADAPTER = "adapter/adapter_model.safetensors"
#: By the way in which an encoder was tuned, the file that checkpoints may share.
SHARED = {"layers": LAYERS, "lora": ADAPTER}


def find_tuned(folder: Path, sha256: str | None, name: str = LAYERS) -> Path:
    """The file of tuned layers, or of adapters, that has this digest: a checkpoint's own, or an embedded one's."""
    for path in (folder / name, *sorted(WEIGHTS.glob(f"*/{name}"))):
        if path.is_file() and file_sha256(path) == sha256:
            return path
    raise CheckpointError(
        f"{folder} lacks the {name} that its config.json names, and no embedded checkpoint has it; fetch it again"
    )


def file_sha256(path: Path) -> str:
    """Digest of a file, read in pieces."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def parts_of(folder: Path) -> list[Path]:
    """What a checkpoint may consist of: the files of its folder and of its adapter; what else lies there is none."""
    adapter = folder / "adapter"
    tuned = adapter.rglob("*") if adapter.is_dir() and not adapter.is_symlink() else ()
    return sorted([*folder.iterdir(), *tuned])


def weights_digest(folder: Path, layers: str | None = None) -> str:
    """One digest over what moves a checkpoint's values: weights, shared layers, layout; not its folder's name."""
    digest = hashlib.sha256((layers or "").encode())
    config = folder / "config.json"
    settings = parse_json(config.read_text("utf-8")) if config.is_file() else {}
    if "layout" in settings:
        digest.update(json.dumps([settings["layout"], settings.get("architecture")], sort_keys=True).encode())
    for path in parts_of(folder):
        if path.suffix != ".safetensors" or not path.is_file():
            continue
        if layers and path.relative_to(folder).as_posix() in (LAYERS, ADAPTER):
            continue
        digest.update(path.relative_to(folder).as_posix().encode())
        digest.update(file_sha256(path).encode())
    return digest.hexdigest()


def _local_folder(name: str) -> Located | None:
    try:
        path = Path(name).expanduser()
        if not path.exists():
            return None
    except (OSError, ValueError, RuntimeError) as error:  # too long, a NUL, no such user
        raise CheckpointError(f"{name[:200]!r} is no checkpoint ({first_line(error)}); check its spelling") from None
    if not path.is_dir():
        raise CheckpointError(f"{path} is a file; pass the folder that holds config.json and model.safetensors")
    if not (path / "config.json").is_file():
        raise CheckpointError(f"{path} has no config.json, so it is not a checkpoint folder")
    return Located(path, "folder")


def cached(name: str, revision: str | None) -> Located | None:
    """A complete snapshot in the Hugging Face cache."""
    from huggingface_hub import constants, try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    try:
        config = try_to_load_from_cache(name, "config.json", revision=revision)
    except HFValidationError:
        raise CheckpointError(f"{name!r} is neither a folder that is there nor a Hub id; check its spelling") from None
    except (OSError, UnicodeDecodeError) as error:
        raise CheckpointError(
            f"{name} in the Hugging Face cache cannot be read ({first_line(error)}); delete it and fetch it again"
        ) from None
    if not isinstance(config, str):
        return None
    folder = Path(config).parent
    # An interrupted download leaves a snapshot without weights, or a blob that is not finished, unless another process
    # is at it; the Hub client then completes it.
    begun = any((folder.parents[1] / "blobs").glob("*.incomplete"))
    if not any(folder.glob("*.safetensors")) or (
        begun and not constants.HF_HUB_OFFLINE and is_reachable(constants.ENDPOINT)
    ):
        return None
    return Located(folder, "Hugging Face cache", folder.name)


def packaged(name: str) -> Located | None:
    """A base encoder from the packages that the catalogue names for it, if they are installed."""
    listed = base_encoders().get(name)
    if listed is None or (folder := from_packages(listed)) is None:
        return None
    # Its weights are looked at wherever they come from.
    _check_files(folder, {name: digest for name, digest in listed.files.items() if name != "model.safetensors"})
    return Located(folder, f"package {listed.packages[0]}")


def _on_hub(name: str, revision: str | None) -> Located:
    return cached(name, revision) or _from_hub(name, revision)


def _from_hub(name: str, revision: str | None, hint: str = "") -> Located:
    from huggingface_hub import constants, snapshot_download
    from huggingface_hub.errors import GatedRepoError, RepositoryNotFoundError, RevisionNotFoundError

    if constants.HF_HUB_OFFLINE:
        raise CheckpointError(f"{name} is not on this machine and HF_HUB_OFFLINE is set{hint}")
    if not is_reachable(constants.ENDPOINT):
        raise CheckpointError(f"{name} is not on this machine and {constants.ENDPOINT} cannot be reached{hint}")
    try:
        folder = snapshot_download(name, revision=revision, allow_patterns=DATA_FILES)
    except GatedRepoError:
        raise CheckpointError(f"{name} is gated; ask for access on its page and log in with `hf auth login`") from None
    except RevisionNotFoundError:
        raise CheckpointError(f"{name} has no revision {revision!r}") from None
    except RepositoryNotFoundError:
        raise CheckpointError(
            f"{name} is not on the Hub, or is private and needs a token (`hf auth login`); check its spelling"
        ) from None
    except MemoryError:
        raise
    except Exception as error:  # of an answer that is not the Hub's, its client raises what comes
        raise CheckpointError(f"{name} could not be downloaded ({first_line(error)}); try again") from None
    return Located(Path(folder), "Hub", Path(folder).name)


def _check_files(folder: Path, digests: Mapping[str, str]) -> None:
    """Refuse a folder whose files are not those of these digests."""
    for name, expected in digests.items():
        if not (folder / name).is_file():
            raise CheckpointError(f"{folder} lacks {name}; delete the folder and fetch it again")
        if (actual := file_sha256(folder / name)) != expected:
            raise CheckpointError(
                f"{folder / name} has sha256 {actual[:12]}…, expected {expected[:12]}…: damaged, or another model; "
                "delete it and fetch it again"
            )
