"""Which files a data set consists of: a folder that `datasets` wrote, one of data files, or what is on the Hub.

`datasets` says which files of a folder belong to which split. They are read like files that are named singly, within
the same bounds; of what lies on the Hub `datasets` makes tables in its cache first.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from json import JSONDecodeError
from pathlib import Path, PurePosixPath
from typing import Any

from dialeval.io.files import first_line, is_reachable, parse_json, read_small, yaml_fields
from dialeval.readers.rows import Choice, RawRow
from dialeval.readers.table_rows import mapping_rows

#: Files that a folder of data may hold; it takes minutes to list more.
MAX_FILES = 1000
#: What `save_to_disk` leaves beside the rows: of several splits, and of one.
_SPLITS, _STATE = "dataset_dict.json", "state.json"
_CARD = "README.md"
#: The format of a file that can be read, by its ending.
FormatOf = Callable[[Path], str | None]


# --- a folder --------------------------------------------------------------------------------------


def files_of(
    folder: Path, format_of: FormatOf, tell: Callable[[str], None], *, split: str | None, subset: str | None
) -> list[Path]:
    """The files of one split, in order."""
    if sum(1 for _ in islice(folder.rglob("*"), MAX_FILES + 1)) > MAX_FILES:
        raise ValueError(
            f"{folder} is a folder of more than {MAX_FILES} files; pass one file, or a folder that holds only the rows"
        )
    if any((folder / marker).is_file() for marker in (_SPLITS, _STATE)):
        if subset is not None:
            raise ValueError(f"{folder} has no subsets; leave out the subset {subset!r}")
        return _saved(folder, split)
    splits = _divided(folder, subset, format_of)
    kinds = Counter(format_of(file) for files in splits.values() for file in files)
    # Files of several kinds are hardly one data set; of as many of each `datasets` takes those of these kinds, too.
    kind = max(kinds, key=lambda kind: (kinds[kind], kind == "parquet", kind == "jsonl"))
    splits = {name: [file for file in files if format_of(file) == kind] for name, files in splits.items()}
    taken = {file for files in splits.values() for file in files}
    home = folder.resolve()  # as those that are taken are named
    beside = (file for file in sorted(home.rglob("*")) if file.is_file() and file.name != _CARD and format_of(file))
    if unread := [str(file.relative_to(home)) for file in beside if file not in taken]:
        more = f" and {len(unread) - 5} more" if len(unread) > 5 else ""
        tell(f"not read as part of this data set: {', '.join(unread[:5])}{more}; score such files one by one")
    chosen: list[Path] = _choose({name: files for name, files in splits.items() if files}, str(folder), split)
    return chosen


def _saved(folder: Path, split: str | None) -> list[Path]:
    """The files of what `save_to_disk` wrote. Names in its JSON are names in its folder, whatever else they say."""
    try:
        if (folder / _SPLITS).is_file():
            names = parse_json(read_small(folder / _SPLITS))["splits"]
            folder = _choose({name: folder / Path(name).name for name in names}, str(folder), split)
        elif split is not None:
            raise ValueError(f"{folder} has no splits; leave out the split {split!r}")
        return [folder / Path(file["filename"]).name for file in parse_json(read_small(folder / _STATE))["_data_files"]]
    except (OSError, KeyError, TypeError, JSONDecodeError, UnicodeDecodeError) as error:
        raise _unreadable(str(folder), error) from None


def _divided(folder: Path, subset: str | None, format_of: FormatOf) -> dict[str, list[Path]]:
    """The files of each split as the folder's card says it, or as they are named."""
    from datasets.data_files import DataFilesDict, EmptyDatasetError, get_data_patterns

    folder, patterns = folder.resolve(), None
    subsets = _subsets(folder)
    if subsets or subset is not None:
        chosen = subset or ("default" if "default" in subsets else "" if len(subsets) > 1 else next(iter(subsets)))
        if chosen not in subsets:
            problem = f"has no subset {chosen!r}" if chosen else "has several subsets"
            raise ValueError(f"{folder} {problem}; choose one of: {', '.join(subsets) or 'none'}")
        inside, patterns = subsets[chosen]
        folder /= inside
    try:
        patterns = patterns or get_data_patterns(str(folder))
        by_split = DataFilesDict.from_patterns(patterns, base_path=str(folder))
    except (EmptyDatasetError, FileNotFoundError):
        by_split = {}
    except ValueError as error:
        raise _unreadable(str(folder), error) from None
    files = {str(name): [file for file in map(Path, listed) if file.name != _CARD and format_of(file)]
             for name, listed in by_split.items()}  # fmt: skip
    if not any(files.values()):
        raise ValueError(f"{folder} holds no data files; pass a file, or a folder with some")
    return files


def _subsets(folder: Path) -> dict[str, tuple[str, dict[str, list[str]] | None]]:
    """What the card says of each subset: the folder that it lies in, and the patterns of its splits' files."""
    card = folder / _CARD
    if not card.is_file():
        return {}
    text = read_small(card)
    _, mark, rest = text.partition("---\n")
    header, end, _ = rest.partition("\n---")
    if not (mark and end) or not text.startswith(mark):
        return {}
    subsets = {}
    for entry in yaml_fields(header, f"the header of {card}").get("configs") or ():
        try:
            name, inside, files = entry["config_name"], entry.get("data_dir") or ".", entry.get("data_files")
            if not isinstance(files, list):
                files = [files] if files else []
            by_split: dict[str, list[str]] = {}
            for part in files:
                paths = part if isinstance(part, str) else part["path"]
                listed = by_split.setdefault("train" if isinstance(part, str) else part["split"], [])
                listed += [paths] if isinstance(paths, str) else paths
        except (TypeError, KeyError, AttributeError):
            raise ValueError(
                f"{card}: an entry of configs is not what `datasets` writes; mend it, or remove it"
            ) from None
        for path in (inside, *[path for paths in by_split.values() for path in paths]):
            _check_inside(path, card)
        subsets[str(name)] = (inside, by_split or None)
    return subsets


def _check_inside(path: object, card: Path) -> None:
    """A card may come from anybody: its patterns stay in its folder, and name no place that would have to be asked."""
    is_local = isinstance(path, str) and ":" not in path and "\\" not in path
    if not is_local or PurePosixPath(str(path)).is_absolute() or ".." in PurePosixPath(str(path)).parts:
        raise ValueError(f"{card}: {str(path)[:100]!r} leads out of the folder; name files in it")


# --- the Hub ---------------------------------------------------------------------------------------


def hub_rows(source: str, choose: Choice, *, split: str | None, subset: str | None) -> Iterator[RawRow]:
    """Rows of a data set on the Hub, from its tables in the cache of `datasets`."""
    with _silent():
        data = _choose(_load(source, subset), source, split)
        wanted = choose(data.column_names)
        try:
            yield from mapping_rows(data.select_columns(list(wanted)), source)
        except Exception as error:  # whatever the parser of the files raises
            raise _unreadable(source, error) from None


def _load(source: str, subset: str | None) -> Any:
    import datasets

    _expect_on_hub(source)
    try:
        return datasets.load_dataset(source, subset)
    except ConnectionError as error:
        raise ValueError(f"{source} is not on this machine and the Hub does not answer ({first_line(error)})") from None
    except datasets.exceptions.DatasetNotFoundError:
        raise ValueError(f"there is no file or folder {source}, and no such data set on the Hub") from None
    except ValueError:
        raise
    except Exception as error:
        raise _unreadable(source, error) from None


@contextmanager
def _silent() -> Iterator[None]:
    """Without what `datasets` logs about a file that it cannot read: the error says it in one sentence."""
    logger = logging.getLogger("datasets")
    before = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        logger.setLevel(before)


def _expect_on_hub(source: str) -> None:
    """Fail at once where `datasets` would retry for half a minute: not in its cache, and no network."""
    import datasets
    from huggingface_hub import constants

    if (Path(datasets.config.HF_DATASETS_CACHE) / source.replace("/", "___")).is_dir():
        return
    if constants.HF_HUB_OFFLINE or not is_reachable(constants.ENDPOINT):
        raise ValueError(f"there is no file or folder {source}, and the Hub cannot be reached to look for a data set")


def _choose(splits: Mapping[str, Any], name: str, split: str | None) -> Any:
    if split is None and len(splits) == 1:
        return next(iter(splits.values()))
    if split is None or split not in splits:
        problem = f"has no split {split!r}" if split else "has several splits"
        raise ValueError(f"{name} {problem}; choose one of: {', '.join(map(str, splits))}")
    return splits[split]


def _unreadable(name: str, error: Exception) -> ValueError:
    reason = first_line(error.__cause__ or error)
    return ValueError(f"{name} cannot be read as a data set ({reason}); check its files, or write it again")
