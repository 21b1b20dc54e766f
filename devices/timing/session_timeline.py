"""The timeline of a whole session in simulated time: all its steps on one axis, from its opening to the present.

    step 1   |--------|                        events have the number of their step
    step 2       |--------x  failed            what it had begun keeps its device: such events are in the timeline too
    step 3                   |-------->        under way: events end now at the latest
             0                      now_ns

A step that ended early has its events as far as they came: one that was cut off ends there, with all operations and
bytes of its op.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple, NoReturn

from ...errors import UnimplementedError
from .timeline import Timeline

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..cluster import Cluster
    from .events import Events
    from .link_use import LinkUse
    from .memory.curve import MemoryCurve
    from .memory.kinds import MemoryPlace
    from .memory.use import MemoryPeak
    from .timeline import Assumption

StepOutcome = Literal["running", "done", "failed"]


class StepSpan(NamedTuple):
    """When a step of a session was under way; `end_ns` is None while it is. "failed" includes cancelled."""

    number: int
    start_ns: int
    end_ns: int | None
    state: StepOutcome


class SessionTimeline(Timeline):
    """The steps of a session, `steps`, on one axis; `makespan_ns` is the present time of the session.

    A critical path reaches back to where a step began: when steps begin is up to the host. The dependency bound is the
    longest one of a step that is done. Values stay in memory between steps, which is not modelled: questions about
    memory are for the timelines of steps, and `peak_bytes` is empty.
    """

    def __init__(
        self,
        events: Events,
        steps: Sequence[StepSpan],
        now_ns: int,
        *,
        warnings: Sequence[str],
        assumed: Sequence[Assumption],
        dependency_bound_ns: int | Callable[[], int],
        cluster: Cluster | None,
        link_use: LinkUse,
    ) -> None:
        """Raises as `Timeline`."""
        super().__init__(
            events,
            warnings=warnings,
            assumed=assumed,
            dependency_bound_ns=dependency_bound_ns,
            cluster=cluster,
            link_use=link_use,
        )
        self.steps = tuple(steps)
        self.makespan_ns = now_ns

    def peak_memory_bytes(self, device: str, place: MemoryPlace = "device") -> NoReturn:
        """Raises UnimplementedError."""
        raise _no_memory()

    def memory(self, device: str, place: MemoryPlace = "device") -> MemoryPeak:
        """Raises UnimplementedError."""
        raise _no_memory()

    def memory_over_time(self, device: str, place: MemoryPlace = "device") -> MemoryCurve:
        """Raises UnimplementedError."""
        raise _no_memory()

    @property
    def shortages(self) -> NoReturn:
        """Raises UnimplementedError."""
        raise _no_memory()

    def interval_ns(self) -> NoReturn:
        """Raises UnimplementedError: the critical path covers one step, and not the time before it."""
        raise UnimplementedError(
            "the timeline of a session has no interval: its critical path reaches back to the begin of a step only; "
            "ask the timelines of steps"
        )

    def _title(self, device: str) -> str:
        return ", ".join([device, *filter(None, [self.models.get(device)])])


def _no_memory() -> UnimplementedError:
    return UnimplementedError(
        "the timeline of a session knows no memory: what values keep between steps is not modelled; "
        "ask the timelines of steps"
    )
