"""Which rows of the benchmarks stand in the dialogues that recipes train on, those of earlier stages included.

    python training/recount.py --corpora CORPORA --mirror MIRROR
    python training/recount.py --corpora CORPORA --mirror MIRROR --only deb-minilm --rows

What counts as shared text is said in `corpora.overlap`. A benchmark of which one row in a hundred or more
leaks belongs into the recipe's `contaminated_by`; single rows belong into overlaps.yaml. The command fails where one
is missing. `--write FILE` keeps the leaked rows of the recipes behind embedded checkpoints, ids only: tables print
agreement on them and on the others apart.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress, track

from common import RECIPES, Recipe, find_recipe, left_out, read_recipe, recounted
from corpora.dialogues import read_corpus, read_rows
from corpora.grouped import Group
from corpora.ratings import find_ratings, overlapping_ratings
from corpora.recount import Leaks, Recount, Turns, merged
from dialeval import benchmarks
from dialeval.checkpoints.find import embedded_checkpoints
from dialeval.core.exchange import Exchange
from ratings import read_ratings
from stages import extra_groups, split_groups

#: Below this share of its rows a benchmark is not marked; the rows are known one by one.
MARKED_SHARE = 0.01
#: What is read, by where it comes from: ids, each with one or several texts (a context with each of its replies).
Reading = dict[str, list[tuple[str, list[Turns]]]]


@dataclass(frozen=True)
class Verdict:
    """What one recipe leaks, ancestors included, against what it declares."""

    name: str
    declared: frozenset[str]
    leaks: Leaks

    @property
    def marked(self) -> list[str]:
        """The benchmarks of which too many rows leak for a number to say much."""
        sizes = {name: benchmarks.info(name).rows for name in self.leaks}
        return sorted(name for name, rows in self.leaks.items() if len(rows) >= MARKED_SHARE * sizes[name])

    @property
    def undeclared(self) -> list[str]:
        """Marked benchmarks that the recipe does not name, and rows of others that are not known."""
        known = {row for rows in recounted()["known"].values() for row in rows}
        few = {
            name: [row for row in rows if not known & {row, row.partition("#")[0]}]
            for name, rows in self.leaks.items()
            if name not in self.marked
        }
        missing = [name for name in self.marked if name not in self.declared]
        return missing + sorted(row for name, rows in few.items() if name not in self.declared for row in rows)


def named_recipe(name: str) -> Recipe:
    """A recipe by its name."""
    path = find_recipe(name)
    if path is None:
        raise SystemExit(f"there is no recipe {name}.yaml")
    return read_recipe(path)


def family(recipe: Recipe) -> list[Recipe]:
    """A recipe and those of the checkpoints that it goes back to, each once."""
    recipes: dict[str, Recipe] = {}
    waiting = [recipe]
    while waiting:
        current = waiting.pop()
        if current["name"] not in recipes:
            recipes[current["name"]], begun = current, current.get("start_from")
            several = begun if isinstance(begun, list) else [begun]
            # runs/NAME/checkpoint, or the name of an embedded checkpoint
            others = current.get("corpora_of"), *current.get("teaching", {}).get("teachers", ())
            names = [Path(start).parent.name or start for start in (*several, *others) if start]
            waiting += [named_recipe(name) for name in names]
    return list(recipes.values())


def reading(recipe: Recipe, root: Path, mirror: Path | None) -> Reading:
    """Everything that the recipe itself trains on, or might draw; ratings lie beside the corpora."""
    out, ratings = left_out(recipe, root), root.parent / "ratings"
    texts_of: Reading = {}

    def dialogues(name: str, splits: Sequence[str]) -> None:
        for split in splits:
            texts_of[f"{name}/{split}"] = _dialogues(root, name, split, out)

    # The first stage of the two-stage scripts may have no steps; QuantiDCE's reads groups.
    if recipe.get("pretraining", {}).get("steps", 1) != 0:
        corpora = recipe.get("corpora", ())
        listed = [] if isinstance(corpora, dict) else [(entry["name"], entry.get("splits", ())) for entry in corpora]
        named = corpora.items() if isinstance(corpora, dict) else listed
        # The trunk draws from the corpora of its stages.
        drawn = {name for stage in recipe.get("stages", ()) for name in stage["corpora"]}
        for name, splits in named:
            if drawn and name not in drawn:
                continue
            # What is not at hand (the papers' corpora, a folder of threads) cannot be counted.
            dialogues(name, [split for split in splits if _is_there(root, name, split)])
    if "groups" in recipe and recipe.get("group_share", 1) and recipe.get("rows", {}).get("valid", 1):
        main = recipe["groups"]
        texts_of[f"{main['name']}/{main['split']}"] = list(_texts(*split_groups(recipe, root)))
    for source in recipe.get("augmentation", ()):
        if "negatives" in source:
            dialogues(source["name"], source["splits"])
        else:
            texts_of[f"{source['name']}/{source['split']}"] = list(_texts(extra_groups(recipe, source, root)))
    # DENSITY and the judge fit their densities to dialogues, the judge percentiles and heads; it learns from ratings.
    fitted = (*recipe.get("fit", {}).get("corpora", ()), *recipe.get("density", ()), *recipe.get("human", ()))
    for corpus in fitted:
        dialogues(corpus["name"], [split for split in corpus["splits"] if _is_there(root, corpus["name"], split)])
    for name, splits in recipe.get("faults", {}).get("corpora", {}).items():
        dialogues(name, [split for split in splits if _is_there(root, name, split)])
    rated = recipe.get("ratings", {})
    if "benchmark" in rated:
        rows, _ = read_ratings(rated["benchmark"], rated["held_out"], mirror=mirror, percent=100, seed=recipe["seed"])
        texts_of[fitted_to(rated["benchmark"])] = [(row.exchange.id or "", [_turns(row.exchange)]) for row in rows]
    unwanted = overlapping_ratings(ratings / rated["leave_out"]) if rated.get("leave_out") else frozenset()
    unwanted |= frozenset(recounted()["leave_out"])
    # Heads of the baselines name their own sources; the last phase names some by what they grade, others are pairs.
    of_heads = [source for head in recipe.get("heads", ()) for source in head["ratings"]]
    named_sources = [rated.get(part, ()) for part in ("train", "labelled", "stack", "dialogues")]
    for source in dict.fromkeys(chain(*named_sources, of_heads, recipe.get("graded", ()), recipe.get("pairs", ()))):
        texts_of[f"{source}/rated"] = list(_rated_texts(ratings, source, unwanted))
    return texts_of


def fitted_to(benchmark: str) -> str:
    """What the rated rows of a benchmark are called that a recipe is fitted to."""
    return f"{benchmark}/ratings"


def _rated_texts(root: Path, source: str, unwanted: frozenset[str]) -> Iterator[tuple[str, list[Turns]]]:
    """What people rated, be it a reply, two of them or a whole dialogue."""
    for row in read_rows(find_ratings(root, source)):
        replies = [row.get(part) for part in ("response", "response_a", "response_b")]
        if str(row.get("id")) not in unwanted:
            context = [turn for turn in row.get("context") or () if turn]
            yield str(row.get("id")), [(*context, reply) for reply in replies if reply] or [tuple(context)]


def _turns(exchange: Exchange) -> Turns:
    return tuple(text for text in (*exchange.context, exchange.response) if text)


@cache
def _dialogues(root: Path, name: str, split: str, out: frozenset[str]) -> list[tuple[str, list[Turns]]]:
    return [(dialogue.id, [dialogue.turns]) for dialogue in read_corpus(root, name, split, leave_out=out)]


def _is_there(root: Path, name: str, split: str) -> bool:
    return any((root / name).glob(f"{split}.jsonl*"))


def _texts(*parts: Sequence[Group]) -> Iterator[tuple[str, list[Turns]]]:
    for group in (group for part in parts for group in part):
        yield group.id, [(*group.context, reply) for reply in (*group.positives, *group.adversarial)]


def verdicts(names: Sequence[str], recount: Recount, root: Path, mirror: Path | None) -> Iterator[Verdict]:
    """Recipe by recipe; what several of them read is counted once."""
    counted: dict[tuple[str, int, int], Leaks] = {}
    for name in names:
        recipe = named_recipe(name)
        parts = []
        for relative in family(recipe):
            for source, texts in reading(relative, root, mirror).items():
                key = source, len(texts), hash(tuple(identity for identity, _ in texts))
                if key not in counted:
                    counted[key] = recount.leaks(texts)
                parts.append(counted[key])
                if source == fitted_to(fitted := source.partition("/")[0]):
                    parts.append({fitted: {identity: {identity} for identity, _ in texts}})
        yield Verdict(name, frozenset(recipe["contaminated_by"]), merged(*parts))


def recipe_names() -> list[str]:
    """All recipes that train something by themselves."""
    names = [path.stem for folder in RECIPES for path in folder.glob("*.yaml")]
    return sorted(name for name in names if name != "ablations" and not name.startswith("own-"))


def leaked_rows(results: Sequence[Verdict]) -> dict[str, dict[str, Any]]:
    """By embedded checkpoint and marked benchmark the ids of leaked rows, `all` where these are nine in ten."""
    leaked: dict[str, dict[str, Any]] = {}
    embedded = {folder.name for folder in embedded_checkpoints().values()}
    for verdict in (verdict for verdict in results if verdict.name in embedded):
        # Attacks and training material have no table of agreement.
        rated = [benchmarks.info(name) for name in verdict.marked]
        for name in (info.name for info in rated if info.kind != "pairs" and info.tells_apart):
            rows, size = sorted(verdict.leaks[name]), benchmarks.info(name).rows
            leaked.setdefault(verdict.name, {})[name] = "all" if len(rows) >= 0.9 * size else rows
    return leaked


def main() -> None:
    """Recount, print, fail on what is not declared."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpora", required=True, type=Path, help="folder with NAME/SPLIT.jsonl.gz of each corpus")
    parser.add_argument("--mirror", type=Path, help="folder with the benchmarks' files; DIALEVAL_MIRROR if left out")
    parser.add_argument("--only", help="names of recipes, by commas")
    parser.add_argument("--rows", action="store_true", help="name every leaked row and the dialogues that hold it")
    parser.add_argument("--write", type=Path, help="JSON file for leaked rows of embedded checkpoints, without text")
    arguments = parser.parse_args()
    names = recipe_names() if arguments.only is None else arguments.only.split(",")
    console = Console(stderr=True)
    with Progress(console=console) as bar:
        task = bar.add_task("benchmarks", total=len(benchmarks.available()))
        recount = Recount(mirror=arguments.mirror, tell=lambda name: bar.update(task, advance=1, description=name))
    results = []
    steps = verdicts(names, recount, arguments.corpora, arguments.mirror)
    for verdict in track(steps, total=len(names), description="recipes", console=console):
        results.append(verdict)
        counts = {name: len(rows) for name, rows in sorted(verdict.leaks.items())}
        print(f"{verdict.name}: {json.dumps(counts)}", flush=True)
        for name in sorted(verdict.leaks) if arguments.rows else ():
            for row, dialogues in sorted(verdict.leaks[name].items()):
                print(f"  {row}: {', '.join(sorted(dialogues))}")
    if arguments.write is not None:
        arguments.write.write_text(json.dumps(leaked_rows(results), indent=0) + "\n", "utf-8")
    undeclared = {verdict.name: verdict.undeclared for verdict in results if verdict.undeclared}
    wrong = [f"{name} does not declare {', '.join(marked)}" for name, marked in undeclared.items()]
    if wrong:
        raise SystemExit("\n".join(wrong))


if __name__ == "__main__":
    main()
