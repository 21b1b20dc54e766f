"""What steps learn about a plan: where to look at the clock, which kernels need a thread, which may reuse buffers.

The first run of a segment cuts it into chunks (`first_run`). A chunk that takes longer than half the time budget
is halved, again and again, until it is short enough or a single kernel; a single slow kernel moves to a worker thread.
Halves that stay fast join again (`joining`).
Steps that are running keep the chunks they started with. One slow run may be due to a busy machine, so it takes two:

    FAST --took too long--> SLOW ONCE --too long again, or ten times the limit--> halved, or SLOW (a single kernel)
      ^-------------------------|--in time                                        SLOW --fast enough--> FAST
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ....devices.kernels.in_place import into
from ....graph.dtypes import DataType, is_ref
from ...plans.plan import NO_CHUNKS
from ...plans.roles import Role, role_of
from .joining import note_run, watch
from .reuse import kept, reusing

if TYPE_CHECKING:
    from ....graph.ops.properties import NodeProperties
    from ...plans.plan import Chunk, Plan, Segment

_FAST_AGAIN = 0.75  # of the limit: a kernel that takes less than this leaves its thread
_WORTH_NOTICE_S = 1e-4
_WORTH_REUSE_S = 5e-6  # a slower instruction has large results, which are worth reusing buffers for
_TRIAL_RUNS = 16
VERY_LONG = 10  # times the limit: no accident of a busy machine


class LearningLimits(NamedTuple):
    """How long a chunk may take before it is halved, and a kernel before it is worth a worker thread."""

    chunk_s: float
    thread_s: float

    @property
    def notice_s(self) -> float:
        """Chunks that took less teach nothing: `learn` need not be called, unless they were slow once or may join."""
        return min(_WORTH_NOTICE_S, *self)


def is_observed(segment: Segment, chunk_id: int) -> bool:
    """Whether `learn` has to be called for every run of a chunk, even if it took little."""
    return chunk_id in segment.slow_once or chunk_id in segment.joinable or chunk_id in segment.on_trial


def learn(
    plan: Plan, segment: Segment, chunks: tuple[Chunk, ...], number: int, took_s: float, limits: LearningLimits
) -> None:
    """Draws the conclusions from how long one chunk took, as the states above say.

    Chunks with slow instructions also begin to reuse buffers, on trial: in a busy moment all instructions are slow. In
    the body of a loop a single very slow run counts as slow once only: among so many runs one is very slow by accident
    now and then.
    """
    chunk = chunks[number]
    if id(chunk) in segment.joinable:
        note_run(segment, chunk, took_s, limits.chunk_s)
    if id(chunk) in segment.on_trial:
        _go_on_with_trial(segment, chunk)
    if took_s > min(_WORTH_REUSE_S, limits.thread_s) * len(chunk) and id(chunk) not in segment.reusing:
        segment.reusing |= {id(chunk)}
        segment.on_trial[id(chunk)] = _TRIAL_RUNS
        _reuse_buffers(plan, segment, chunks, number)
    if took_s <= min(limits):
        segment.slow_once = segment.slow_once - {id(chunk)} or NO_CHUNKS
    elif (plan.repeats or took_s <= VERY_LONG * min(limits)) and id(chunk) not in segment.slow_once:
        segment.slow_once |= {id(chunk)}
        return
    if len(chunk) > 1:
        if took_s > limits.chunk_s:
            _split(segment, chunk)
    elif took_s < limits.thread_s * _FAST_AGAIN:
        if id(chunk) in segment.slow:
            segment.slow = segment.slow - {id(chunk)} or NO_CHUNKS
            watch(segment, [chunk])
    elif took_s > limits.thread_s and may_run_in_thread(
        plan.properties[segment.origins[sum(map(len, chunks[:number]))]]
    ):
        segment.slow |= {id(chunk)}


def _reuse_buffers(plan: Plan, segment: Segment, chunks: tuple[Chunk, ...], number: int) -> None:
    """Replaces instructions of a chunk by ones that write into the buffer of an input which nothing reads later."""
    begin = sum(map(len, chunks[:number]))
    for position, instruction in enumerate(chunks[number]):
        function = into(plan.properties[segment.origins[begin + position]])
        if function is not None:
            chunks[number][position] = reusing(instruction, function)


def _go_on_with_trial(segment: Segment, chunk: Chunk) -> None:
    """Counts one run; after the last one what has found no buffer worth reusing is what it was before."""
    segment.on_trial[id(chunk)] -= 1
    if not segment.on_trial[id(chunk)]:
        del segment.on_trial[id(chunk)]
        chunk[:] = map(kept, chunk)


def may_run_in_thread(properties: NodeProperties) -> bool:
    """Whether a node only computes, or waits for files: others may share state with nodes that run at the same time."""
    if properties.op_def.record.waits_for_files:
        return True
    types = (*properties.input_types, *properties.output_types)
    has_state = properties.op_def.is_stateful or any(t is DataType.RESOURCE or is_ref(t) for t in types)
    return not has_state and role_of(properties.op_def.name) is Role.COMPUTE


def _split(segment: Segment, chunk: Chunk) -> None:
    """Halves a chunk, for steps that start later."""
    middle = len(chunk) // 2
    if middle:
        halves = chunk[:middle], chunk[middle:]
        segment.chunks = tuple(part for c in segment.chunks for part in (halves if c is chunk else (c,)))
        segment.joinable.pop(id(chunk), None)
        watch(segment, halves)
        if id(chunk) in segment.reusing:
            segment.reusing = (segment.reusing - {id(chunk)}) | set(map(id, halves))
        runs = segment.on_trial.pop(id(chunk), 0)
        if runs:
            segment.on_trial.update((id(half), runs) for half in halves)
