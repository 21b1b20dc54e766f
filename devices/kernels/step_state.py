"""What kernels keep for the length of one step: the place where nodes of a step meet, whichever device they are on.

    def start(call, value):
        meeting = call.step.state(("acme.meet", name), Meeting)     the first node makes it, the others find it
        meeting.join(call, value)                                   the last one to come ends all calls

    OPEN --state(key, make)--> makes what is not there yet, and keeps it
      `--the step is done, has failed or is cancelled--> ENDED: nothing is kept, and asking is FAILED_PRECONDITION

Nodes of all devices and tasks of the step share it; steps share nothing. A function that a kernel calls has a step of
its own. When a step fails, its calls are cancelled first: what they undo in `on_cancel` still finds the state.
What stays from step to step is the state of a device (`devices.state`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Protocol, TypeVar, cast

from ...errors import FailedPreconditionError

T = TypeVar("T")


class KernelStep(Protocol):
    """A step, as its kernels see it; also to compare by identity."""

    def state(self, key: Hashable, make: Callable[[], T]) -> T:
        """What is kept under `key` until the step ends; `make` makes it for the first that asks.

        Begin a key with the name of your package. FailedPreconditionError once the step has ended.
        """


class StepState:
    """The state of one step; it is open until `end`."""

    __slots__ = ("_kept",)

    def __init__(self) -> None:
        self._kept: dict[Hashable, Any] | None = {}  # Any: whatever kernels keep

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """What is kept under `key`, which `make` makes if need be; FailedPreconditionError after `end`."""
        if self._kept is None:
            raise FailedPreconditionError(f"state {key!r} is of a step that has ended; ask while the step runs")
        if key not in self._kept:
            self._kept[key] = make()
        return cast(T, self._kept[key])

    def end(self) -> None:
        """Forgets everything."""
        self._kept = None
