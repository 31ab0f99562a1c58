"""Replies of 12 generators to 150 PersonaChat contexts, judged by Zhao and colleagues."""

from __future__ import annotations

from dialeval.benchmarks.base import BenchmarkInfo, Definition, FileSource, Scale, SourceFile
from dialeval.benchmarks.catalogue.papers import ZHAO
from dialeval.benchmarks.readers.dstc10 import read

INFO = BenchmarkInfo(
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

DEFINITIONS = (Definition(INFO, read),)
