"""Weights: where they are found, the format of a checkpoint, and how one is checked, loaded and saved.

The embedded checkpoints are the folders of `weights/`.
"""

from dialeval.io.harmless import one_line


class CheckpointError(RuntimeError):
    """Weights could not be found, or are not what they should be; the message says what to do, in one line."""

    def __init__(self, message: str) -> None:
        super().__init__(one_line(message))
