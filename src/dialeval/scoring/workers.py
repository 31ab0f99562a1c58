"""The processes that `torchrun` or `accelerate launch` started for one run, and what they tell each other.

They exchange a few small objects at the beginning and the end, over gloo; scores travel through files.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Self, TypeVar, cast

Shared = TypeVar("Shared")

#: A process that is done waits for the slowest one, however long that takes.
_PATIENCE = timedelta(days=365)


class FailedElsewhere(RuntimeError):
    """Another process of the workers has failed, and has said why."""


@dataclass(frozen=True)
class WorkerGroup:
    """This process's number among all of them, and among those of its machine."""

    rank: int
    size: int
    local_rank: int

    @classmethod
    def from_environment(cls) -> Self | None:
        """The workers that the launcher's variables describe; None for a process of its own."""
        size = int(os.environ.get("WORLD_SIZE", "1"))
        if size < 2 or "RANK" not in os.environ:
            return None
        rank = int(os.environ["RANK"])
        return cls(rank, size, int(os.environ.get("LOCAL_RANK", rank)))

    @property
    def leads(self) -> bool:
        """Whether this is the process that checks the input, speaks, and writes the outcome."""
        return self.rank == 0

    def __enter__(self) -> Self:
        import torch
        from torch import distributed

        distributed.init_process_group("gloo", rank=self.rank, world_size=self.size, timeout=_PATIENCE)
        if torch.cuda.is_available():
            torch.cuda.set_device(self.local_rank % torch.cuda.device_count())
        return self

    def __exit__(self, *error: object) -> None:
        from torch import distributed

        distributed.destroy_process_group()

    def from_leader(self, action: Callable[[], Shared]) -> Shared:
        """The leader acts and all get the outcome; if it fails, it raises and the others end quietly."""
        from torch import distributed

        message: list[Any] = [None, True]
        error: Exception | None = None
        if self.leads:
            try:
                message = [pickle.dumps(action()), False]
            except Exception as caught:
                error = caught
        distributed.broadcast_object_list(message, src=0)
        if error is not None:
            raise error
        if message[1]:
            raise FailedElsewhere("the first process has failed")
        # Made by our own leader a moment ago, over the launcher's private connection.
        return cast(Shared, pickle.loads(message[0]))

    def wait_for_all(self) -> None:
        """Return when every process has come here."""
        from torch import distributed

        distributed.barrier()
