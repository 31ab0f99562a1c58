"""Scoring of files: chunk by chunk, never twice, with an outcome that is whole or not there."""

from dialeval.scoring.run import score_file
from dialeval.scoring.score_table import Summary
from dialeval.scoring.task import Task

__all__ = ["Summary", "Task", "score_file"]
