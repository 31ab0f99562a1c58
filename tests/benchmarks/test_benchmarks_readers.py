"""Every reader on a small file of its format, with texts made up here."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from dialeval.benchmarks import cleaned, readers
from dialeval.benchmarks.benchmark import BenchmarkInfo, Definition, Scale, complete, labelled_replies
from dialeval.benchmarks.readers import turns_of


def declare(**facts: Any) -> BenchmarkInfo:
    shared: dict[str, Any] = {"name": "toy", "title": "Toy", "level": "turn", "rows": 0, "sources": ()}
    return BenchmarkInfo(**{**shared, "licence": "MIT", "citation": "nobody", **facts})


def written(folder: Path, files: Mapping[str, Any]) -> dict[str, Path]:
    """Write JSON values, lists of them one per line, or plain text."""
    paths = {}
    for number, (name, content) in enumerate(files.items()):
        paths[name] = folder / str(number)
        paths[name].write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return paths


def lines(*items: Any) -> str:
    return "".join(json.dumps(item) + "\n" for item in items)


def test_grade_takes_contexts_and_references_per_system(tmp_path: Path) -> None:
    names = ("Dataset", "DialogModel", "Context", "Response", "HumanScores")

    def judged(*values: str, corpus: str = "tea_EVAL") -> dict[str, str]:
        return dict(zip(names, (corpus, *values), strict=True))

    files = {
        "evaluation/human_score/human_judgement.json": [
            judged("b", "Tea ?|||Yes !", "Green or black ?", "[5, 4]"),
            judged("a", "Cold today .|||Very .", "i ' m a cat .", "[1, 2, 3]"),
            judged("a", "elsewhere|||x", "y", "[1]", corpus="coffee"),
            judged("a", "Hello .|||Hi .", "Bye .", "[2, 2]"),
        ],
        "evaluation/eval_data/tea/a/human_ref.txt": "Take a coat .\nHow are you ?\n",
        "evaluation/eval_data/tea/b/human_ref.txt": "With milk ?\n",
    }
    info = declare(systems=("a", "b"), aspects={"coherence": Scale(1, 5)})
    rows = list(readers.grade(info, written(tmp_path, files), corpus="tea", judged_as="tea_EVAL"))
    assert list(rows[0]) == ["context", "response", "references", "system", "ratings"]
    assert [tuple(row.values()) for row in rows] == [
        (["Cold today .", "Very ."], "i ' m a cat .", ["Take a coat ."], "a", {"coherence": [1, 2, 3]}),
        (["Hello .", "Hi ."], "Bye .", ["How are you ?"], "a", {"coherence": [2, 2]}),
        (["Tea ?", "Yes !"], "Green or black ?", ["With milk ?"], "b", {"coherence": [5, 4]}),
    ]


def test_dstc10_gives_the_overall_score_its_name(tmp_path: Path) -> None:
    item = {
        "model": "S2S",
        "context": "Tea ?\nYes .",
        "response": "Here .",
        "reference": ["Milk ?"],
        "annotations": {"content": [1, 2, 3, 4], "appropriateness": [5, 5, 5, 1]},
    }
    assert list(readers.zhao(declare(), written(tmp_path, {"f": [item]}))) == [
        {
            "context": ["Tea ?", "Yes ."],
            "response": "Here .",
            "references": ["Milk ?"],
            "system": "S2S",
            "ratings": {"content": [1, 2, 3, 4], "overall": [5, 5, 5, 1]},
        }
    ]


def test_usr_refers_to_the_original_reply(tmp_path: Path) -> None:
    item = {
        "context": "hi\nhello there\n",
        "fact": "your persona: i like tea.\nyour persona: i have a boat.\n",
        "annotators": ["x", "y", "z"],
        "responses": [
            {"response": "ahoy\n", "model": "Original Ground Truth", "Overall": [3, 4, 4]},
            {"response": " tea \n", "model": "KV-MemNN", "Overall": [1, 1, 2]},
        ],
    }
    first, second = readers.usr(declare(aspects={"Overall": Scale(1, 5)}), written(tmp_path, {"f": [item]}))
    assert first["response"] == "ahoy"
    assert second == {
        "context": ["hi", "hello there"],
        "response": "tea",
        "references": ["ahoy"],
        "facts": ["i like tea.", "i have a boat."],
        "system": "KV-MemNN",
        "ratings": {"Overall": [1, 1, 2]},
    }


TEA = "User: Hi!\nSystem: Hello.\nUser: Tea?"


def judged_by_fed(context: str, system: str, answers: dict[str, Any], response: str | None = None) -> dict[str, Any]:
    item = {"context": context, "system": system, "annotations": answers}
    return item if response is None else {**item, "response": response}


FED = [
    judged_by_fed("User: Hi!", "Bot", {"Overall": [4, "N/A (so)"]}, "System: Hello."),
    judged_by_fed(TEA, "Bot", {"Overall": []}, "System:  Yes: black"),
    judged_by_fed(TEA, "Bot", {"Coherent": [2, 0, "N/A"]}),
    judged_by_fed("User: Cold.", "Human", {"Overall": [1]}, "System: So?"),
    judged_by_fed("User: Cold.\nSystem: So?", "Human", {"Coherent": [1]}),
    judged_by_fed("User: Hi!", "Bot", {"Overall": [0]}, "System: Ho!"),
    judged_by_fed("User: Hi!\nSystem: Ho!", "Bot", {"Coherent": [1]}),
]


def test_fed_turns_are_grouped_by_dialogue_and_by_shared_context(tmp_path: Path) -> None:
    rows = list(readers.fed_turns(declare(), written(tmp_path, {"f": FED})))
    assert [row["context"] for row in rows] == [["Hi!"], ["Hi!", "Hello.", "Tea?"], ["Cold."], ["Hi!"]]
    assert [row["response"] for row in rows] == ["Hello.", "Yes: black", "So?", "Ho!"]
    assert [row["ratings"]["Overall"] for row in rows] == [[4.0], [], [1.0], [0.0]]
    assert [row["group"] for row in rows] == [f"toy-dialogue-{number:05d}" for number in (0, 0, 1, 0)]


def test_fed_dialogues_keep_both_speakers(tmp_path: Path) -> None:
    first, second, _ = readers.fed_dialogues(declare(level="dialogue"), written(tmp_path, {"f": FED}))
    assert first == {
        "dialogue": ["Hi!", "Hello.", "Tea?"],
        "speakers": ["User", "System", "User"],
        "system": "Bot",
        "ratings": {"Coherent": [2.0, 0.0]},
    }
    assert second["system"] == "Human"


def test_dstc9_joins_the_annotators_of_neighbouring_items(tmp_path: Path) -> None:
    def judged(context: str, overall: Any, depth: Any) -> dict[str, Any]:
        return {"context": context, "human (overall)": overall, "topic depth": depth}

    tea, cold = "User: Tea?\nSystem: \nUser:\nSystem: two\nlines\n", "User: Cold.\nSystem: So?\n"
    files = {
        "FlowScore/data/bot1.json": [judged(tea, 5, 3), judged(tea, 2, "N/A"), judged(cold, 1, 1), judged(tea, 4, 1)],
        "FlowScore/data/bot2.json": [judged(cold, 3, 2)],
    }
    info = declare(
        level="dialogue", systems=("bot1", "bot2"), aspects={"overall": Scale(1, 5), "topic depth": Scale(1, 3)}
    )
    rows = list(readers.dstc9(info, written(tmp_path, files)))
    assert [(row["system"], row["ratings"]) for row in rows] == [
        ("bot1", {"overall": [5.0, 2.0], "topic depth": [3.0]}),
        ("bot1", {"overall": [1.0], "topic depth": [1.0]}),
        ("bot1", {"overall": [4.0], "topic depth": [1.0]}),
        ("bot2", {"overall": [3.0], "topic depth": [2.0]}),
    ]
    assert rows[0]["dialogue"] == ["Tea?", "", "", "two\nlines"]
    assert rows[0]["speakers"] == ["User", "System", "User", "System"]


@given(
    st.lists(st.tuples(st.sampled_from(["User", "System"]), st.text().filter(lambda text: ":" not in text)), min_size=1)
)
def test_a_transcript_gives_back_its_turns(turns: list[tuple[str, str]]) -> None:
    turns = [(speaker, text.replace("\r", "")) for speaker, text in turns]
    transcript = "\n".join(f"{speaker}: {text}" for speaker, text in turns)
    assert turns_of(transcript) == ([speaker for speaker, _ in turns], [text.strip() for _, text in turns])


REPLIES = {"positive": ["p0", "p1", "p2"], "adversarial": ["a0", "a1", "a2"], "random": ["r0", "r1", "r2"]}


def test_references_of_labelled_replies_follow_the_rule() -> None:
    rows = labelled_replies("x-1", ["Tea?"], REPLIES)
    others = (["p1", "p2"], ["p0", "p2"], ["p0", "p1"])
    kinds = (("positive", 1, "positive"), ("adversarial_negative", 0, "adversarial"), ("random_negative", 0, "random"))
    assert [(row["id"], row["label"], row["kind_of_reply"], row["references"]) for row in rows] == [
        (f"x-1#{word}#{place}", label, kind, texts) for word, label, kind in kinds for place, texts in enumerate(others)
    ]


def test_dailydialogpp_reads_contexts_with_and_without_negatives(tmp_path: Path) -> None:
    full = {
        "id": 0,
        "context": ["Tea?", " Yes. "],
        "positive_responses": ["Good.", "Milk?"],
        "adversarial_negative_responses": ["Tea grows."],
        "random_negative_responses": ["Nine o'clock."],
    }
    bare = {"dialog_id": 7, "context": ["Hi."], "positive_responses": ["Hello."]}
    rows = list(readers.dailydialogpp(declare(), written(tmp_path, {"f": lines(full, bare)})))
    of_first = ("positive#0", "positive#1", "adversarial_negative#0", "random_negative#0")
    assert [row["id"] for row in rows] == [*(f"toy-00000#{place}" for place in of_first), "toy-00001#positive#0"]
    assert rows[0]["context"] == ["Tea?", "Yes."]
    assert rows[4]["references"] == []


def test_fbd_as_released_keeps_every_position_and_character(tmp_path: Path) -> None:
    item = {"src": " tea ? yes . ", "refs": ["milk ?"], "hyps": [" a", "b"], "human_scores": [[1.5, 4.0], [2.5, 3.0]]}
    info = declare(systems=("toy/0", "toy/1"), aspects={"Natural": Scale(1, 3), "Overall": Scale(1, 5)})
    shared = {"context": [" tea ? yes . "], "references": ["milk ?"]}
    assert list(readers.released(info, written(tmp_path, {"f": lines(item)}))) == [
        {**shared, "response": " a", "system": "toy/0", "scores": {"Natural": 1.5, "Overall": 4.0}},
        {**shared, "response": "b", "system": "toy/1", "scores": {"Natural": 2.5, "Overall": 3.0}},
    ]


def test_fbd_clean_drops_what_is_no_system_and_keeps_ids() -> None:
    raw = [
        {"context": ["Tea?"], "response": text, "system": system, "ratings": {"overall": [score]}}
        for text, system, score in (("a", "truth", 5), ("b", "S2S", 2), ("c", "noise", 1), ("d", "GPT", 3))
    ]
    base = declare(
        name="base",
        rows=4,
        aspects={"overall": Scale(1, 5)},
        systems=("truth", "S2S", "GPT", "noise"),
        human_systems=("truth",),
        negative_systems=("noise",),
    )
    clean = cleaned(replace(base, name="fbd_toy"), Definition(base, lambda *_: raw), rows=2, oddities=("so",))
    rows = complete(clean.info, clean.read(clean.info, {}))
    assert clean.info.systems == ("S2S", "GPT")
    assert clean.info.protocol == "clean"
    assert [(row["id"], row["dataset"], row["system"], row["scores"], row["group"]) for row in rows] == [
        ("base-00001", "fbd_toy", "S2S", {"overall": 2.0}, "base-context-00000"),
        ("base-00003", "fbd_toy", "GPT", {"overall": 3.0}, "base-context-00000"),
    ]
