"""Baselines from the literature, each a `Metric`, so that every new metric has something to beat.

With references (`reference` holds what they share): `bleu`, `delta_bleu`, `rouge`, `meteor` compare
words, `embedding` word vectors, `bertscore` and `sentence` contextual vectors. Without: `masked`,
`causal` and `fed` ask language models. `words`, `vectors`, `wordnet`, `models` and `batching` are
what they stand on.
"""
