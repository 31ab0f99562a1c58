"""Baselines from the literature, each a `Metric`, so that every new metric has something to beat.

With references (`reference` holds what they share): `overlap` compares words, `embedding` word vectors, `bertscore` and
`sentence` contextual vectors. Without: `likelihood` asks language models. `words` and `models` are what they stand on.
"""
