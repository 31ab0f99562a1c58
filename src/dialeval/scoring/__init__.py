"""Scoring of files: chunk by chunk, never twice, with an outcome that is whole or not there."""

from dialeval.registry import load_metrics
from dialeval.scoring.run import score_to_file, score_to_stream
from dialeval.scoring.summary import Summary
from dialeval.scoring.task import Task

__all__ = ["Summary", "Task", "load_metrics", "score_to_file", "score_to_stream"]
