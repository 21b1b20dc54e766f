"""What is learnt of a plan while it runs: where to look at the clock, what is worth a thread, what may reuse a buffer.

All instructions of a segment begin in chunks of a fixed size. One that takes longer than half the budget of the event
loop is halved, and again, until it is short or a single kernel; a kernel that is slow alone runs in a worker thread.
Steps that are under way keep the chunks they have. The machine may be busy, so once is no proof:

    fast --took too long--> SLOW ONCE --again, or very long at once--> halved, or slow (a single kernel)
      ^------------------------|--in time                              slow --fast enough again--> fast
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ...devices.kernels.in_place import into
from ...graph.dtypes import DataType, is_ref
from ..plans.roles import Role, role_of
from .reuse import reusing

if TYPE_CHECKING:
    from ..plans.plan import Chunk, Plan, Segment

_FAST_AGAIN = 0.75  # of the limit: below, a kernel that was slow once, on a busy machine perhaps, leaves its thread
_WORTH_NOTICE_S = 1e-4
_WORTH_REUSE_S = 5e-6  # an instruction that takes so long makes results that are not tiny
_VERY_LONG = 10  # times a limit: no accident


class Limits(NamedTuple):
    """How long a chunk may take before it is halved, and a kernel before it is worth a worker thread."""

    chunk_s: float
    thread_s: float

    @property
    def notice_s(self) -> float:
        """From here on `learn` may have something to do."""
        return min(_WORTH_NOTICE_S, *self)


def learn(plan: Plan, segment: Segment, chunks: tuple[Chunk, ...], number: int, took_s: float, limits: Limits) -> None:
    """Takes note of how long a chunk took.

    One whose instructions take long reuses buffers from now on; one that takes long itself twice running, or very
    long, is halved; a single kernel is marked or unmarked as slow. What a loop runs again and again cannot be very
    long by accident once in a while: that is the machine.
    """
    chunk = chunks[number]
    if took_s > min(_WORTH_REUSE_S, limits.thread_s) * len(chunk) and id(chunk) not in segment.reusing:
        segment.reusing |= {id(chunk)}
        _reuse_buffers(plan, segment, chunks, number)
    if took_s <= min(limits):
        segment.slow_once -= {id(chunk)}
    elif (plan.repeats or took_s <= _VERY_LONG * min(limits)) and id(chunk) not in segment.slow_once:
        segment.slow_once |= {id(chunk)}
        return
    if len(chunk) > 1:
        if took_s > limits.chunk_s:
            _split(segment, chunk)
    elif took_s < limits.thread_s * _FAST_AGAIN:
        segment.slow -= {id(chunk)}
    elif took_s > limits.thread_s and _may_run_in_thread(plan, segment.origins[sum(map(len, chunks[:number]))]):
        segment.slow |= {id(chunk)}


def _reuse_buffers(plan: Plan, segment: Segment, chunks: tuple[Chunk, ...], number: int) -> None:
    """Lets the instructions of a chunk that can write into a dying input do so."""
    begin = sum(map(len, chunks[:number]))
    for position, instruction in enumerate(chunks[number]):
        function = into(plan.properties[segment.origins[begin + position]])
        if function is not None:
            chunks[number][position] = reusing(instruction, function)


def _may_run_in_thread(plan: Plan, node: int) -> bool:
    """Whether a node only computes: not if it sends, or reads or writes what other nodes may write."""
    properties = plan.properties[node]
    if properties.op_def.record.waits_for_files:
        return True
    types = (*properties.input_types, *properties.output_types)
    has_state = properties.op_def.is_stateful or any(t is DataType.RESOURCE or is_ref(t) for t in types)
    return not has_state and role_of(properties.op_def.name) is Role.COMPUTE


def _split(segment: Segment, chunk: Chunk) -> None:
    """Halves a chunk for later steps; steps that are under way keep the chunks they have."""
    middle = len(chunk) // 2
    if middle:
        halves = chunk[:middle], chunk[middle:]
        segment.chunks = tuple(part for c in segment.chunks for part in (halves if c is chunk else (c,)))
        if id(chunk) in segment.reusing:
            segment.reusing = (segment.reusing - {id(chunk)}) | set(map(id, halves))
