"""Scoring of files: chunk by chunk, never twice, with an outcome that is whole or not there."""

from dialeval.scoring.run import Task, load_metrics, score_to_file, score_to_stream
from dialeval.scoring.summary import Summary

__all__ = ["Summary", "Task", "load_metrics", "score_to_file", "score_to_stream"]
