"""Baselines from the literature, each a `Metric`, so that every new metric has something to beat.

`overlap` and `reference` hold what the reference-based ones share; then one file per family: `bleu`,
`delta_bleu`, `rouge`, `meteor` (words), `embedding` over `vectors` (word vectors), `bertscore`,
`sentence` (contextual similarity), `likelihood`, `fed` (language models), with `resources` for the
data and models that some of them need.
"""
