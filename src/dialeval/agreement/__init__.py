"""How far a metric agrees with people, and how sure one can be.

In the order of a run: `settings`; `sources` (what is judged); `on_benchmark` and `values` (scoring, kept on disk);
`judgements` (the human side and the questions); `measure`, `comparisons` and `breakdowns` (statistics and tests);
`prepare` and `runs` (all of it together); `results` and `sections` (what is left behind).
`score_comparison` compares two files of scores.
"""
