"""Zhao and colleagues' judgements of generators, in the development files of DSTC10 track 5."""

from __future__ import annotations

from collections.abc import Iterable

from dialeval.benchmarks.base import BenchmarkInfo, Definition, Files, FileSource, Row, Scale, SourceFile, Subset
from dialeval.benchmarks.catalogue.papers import ZHAO
from dialeval.io import parse_json


def read(info: BenchmarkInfo, files: Files) -> Iterable[Row]:
    """One row per item; turns are separated by line breaks."""
    (path,) = files.values()
    for item in parse_json(path.read_text(encoding="utf-8")):
        yield {
            "context": [turn.strip() for turn in item["context"].split("\n")],
            "response": item["response"].strip(),
            "references": [reference.strip() for reference in item["reference"]],
            "system": item["model"],
            # This track calls "appropriateness" what the original paper calls the overall score.
            "ratings": {
                "overall" if aspect == "appropriateness" else aspect: values
                for aspect, values in item["annotations"].items()
            },
        }


DAILYDIALOG = BenchmarkInfo(
    name="dailydialog_zhao",
    title="Zhao judgements on DailyDialog",
    level="turn",
    rows=900,
    sources=(
        FileSource(
            "Jeiyoon/dstc10",
            "ca5ec03881c6ee35bba7d4511064417d723eea14",
            (
                SourceFile(
                    "dev_dataset/dailydialog-zhao_eval.json",
                    "fe9479aaf91c45887cc84085c281aab4591ac01766bde5aae6ee79bcbd9d99bb",
                    916594,
                ),
            ),
        ),
    ),
    licence=("CC BY-NC-SA 4.0 as reported for the original record; none stated in the repository this copy comes from"),
    citation=ZHAO.citation,
    bibtex=ZHAO.bibtex,
    aspects={"content": Scale(1, 5), "grammar": Scale(1, 5), "relevance": Scale(1, 5), "overall": Scale(1, 5)},
    main_aspect="overall",
    systems=(
        "ground-truth",
        "GPT2_medium greedy_temp1.0_k0_p0.0",
        "GPT2_medium sample_temp1.0_k0_p0.0",
        "GPT2_medium top_temp1.0_k0_p0.5",
        "GPT2_small greedy_temp1.0_k0_p0.0",
        "GPT2_small sample_temp1.0_k0_p0.0",
        "GPT2_small top_temp1.0_k0_p0.5",
        "GPT2_small top_temp1.0_k0_p0.9",
        "HRED_attn greedy_temp1.0_k0_p0.0",
        "HRED_attn sample_temp1.0_k0_p0.0",
        "HRED_attn top_temp1.0_k0_p0.5",
        "S2S greedy_temp1.0_k0_p0.0",
        "S2S sample_temp1.0_k0_p0.0",
        "S2S top_temp1.0_k0_p0.5",
        "S2S_attn greedy_temp1.0_k0_p0.0",
        "S2S_attn sample_temp1.0_k0_p0.0",
        "S2S_attn top_temp1.0_k0_p0.5",
        "VHRED_attn greedy_temp1.0_k0_p0.0",
        "VHRED_attn sample_temp1.0_k0_p0.0",
        "VHRED_attn top_temp1.0_k0_p0.5",
        "negative-sample",
    ),
    human_systems=("ground-truth",),
    negative_systems=("negative-sample",),
    exclusions={"generated": ("ground-truth", "negative-sample"), "human": ("ground-truth",), "none": ()},
    default_exclusion="generated",
    subsets={
        "density": Subset(
            without=("ground-truth",),
            last_share=0.8,
            why="640 rows: what the released script of DENSITY keeps; it also drops outlying ratings",
        )
    },
    oddities=(
        (
            "A system is a model with its decoding; each context was answered by a draw of them, so systems "
            "have different contexts and 23 to 52 rows each."
        ),
        "Every context also has its original human reply and a negative reply taken from another context.",
        "In the ground-truth rows the reference is the response itself.",
        "This copy names the overall score 'appropriateness'.",
        "Text is tokenised and lower-cased at the source.",
    ),
)

PERSONA = BenchmarkInfo(
    name="persona_zhao",
    title="Zhao judgements on PersonaChat",
    level="turn",
    rows=900,
    sources=(
        FileSource(
            "Jeiyoon/dstc10",
            "ca5ec03881c6ee35bba7d4511064417d723eea14",
            (
                SourceFile(
                    "dev_dataset/persona-zhao_eval.json",
                    "f4ff1886b08979bd2a0d24ba0a46fdf1cb2d0cf46d242bd9e6e3ba6ae039c86e",
                    606941,
                ),
            ),
        ),
    ),
    licence=("CC BY-NC-SA 4.0 as reported for the original record; none stated in the repository this copy comes from"),
    citation=ZHAO.citation,
    bibtex=ZHAO.bibtex,
    aspects={"overall": Scale(1, 5)},
    main_aspect="overall",
    systems=(
        "ground-truth",
        "GPT2_medium greedy_temp1.0_k0_p0.0",
        "GPT2_medium sample_temp1.0_k0_p0.0",
        "GPT2_medium top_temp1.0_k0_p0.5",
        "GPT2_small greedy_temp1.0_k0_p0.0",
        "GPT2_small sample_temp1.0_k0_p0.0",
        "GPT2_small top_temp1.0_k0_p0.5",
        "HRED_attn greedy_temp1.0_k0_p0.0",
        "HRED_attn sample_temp1.0_k0_p0.0",
        "HRED_attn top_temp1.0_k0_p0.5",
        "S2S_attn greedy_temp1.0_k0_p0.0",
        "S2S_attn sample_temp1.0_k0_p0.0",
        "S2S_attn top_temp1.0_k0_p0.5",
        "negative-sample",
    ),
    human_systems=("ground-truth",),
    negative_systems=("negative-sample",),
    exclusions={"generated": ("ground-truth", "negative-sample"), "human": ("ground-truth",), "none": ()},
    default_exclusion="generated",
    oddities=(
        (
            "A system is a model with its decoding; each context was answered by a draw of them, so systems "
            "have different contexts and 43 to 60 rows each."
        ),
        "Every context also has its original human reply and a negative reply taken from another context.",
        "In the ground-truth rows the reference is the response itself.",
        "This copy names the overall score 'appropriateness'.",
        "Text is tokenised and lower-cased at the source.",
        "One context occurs twice, so 150 contexts are 149 groups.",
        "The persona facts behind the conversations are not in the release.",
    ),
)

BENCHMARKS = {
    "dailydialog_zhao": (Definition(DAILYDIALOG, read),),
    "persona_zhao": (Definition(PERSONA, read),),
}
