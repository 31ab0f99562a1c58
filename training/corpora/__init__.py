"""Training corpora: readers, negative sampling and batching. Nothing here computes a score."""
