"""Robustness: attacks on true replies, and how often a metric notices them."""
