"""The first run of a segment: instruction by instruction, since nobody knows yet how long its kernels take.

Between two instructions there is a look at the clock. A kernel with large inputs, or with sizes of a large output among
them, is predicted first, by the operations and bytes of its op and rates of a slow core; one that may take long runs in
a worker thread. A wrong guess costs a switch of threads, some 0.1 ms. The times of this run cut the segment:

    instruction     a       b       c                     d       e
    predicted       -       -       8 ms, in a thread     -       -
    took            20 us   30 us                         1.4 ms  1.1 ms
    chunks          [a, b]          [c], slow             [d]     [e]      both slow once, for a limit of 1 ms
"""

from __future__ import annotations

from itertools import chain, pairwise
from math import inf, prod
from typing import TYPE_CHECKING, Any

import numpy as np

from ....devices.kernels.op_cost import CostContext, bytes_of, flops_of, is_free, is_matrix
from ....graph.analysis.shape_functions import is_loaded
from ....graph.dtypes import known_dims
from ....graph.shape_inference.op_shapes import shapes_of
from ...plans.instructions import run_instructions, slots_read
from ...plans.plan import NO_CHUNKS
from ...plans.planning import CHUNK
from .chunk import SlowChunk
from .joining import watch
from .learning import VERY_LONG, LearningLimits, may_run_in_thread

if TYPE_CHECKING:
    from ....graph.ops.properties import NodeProperties
    from ...plans.instructions import Instruction, Slots
    from ...plans.plan import Chunk, Plan, Segment
    from ..pacing import Pacer
    from .chunk import Turns

_ARRAY = np.ndarray
_LARGE_BYTES = 1 << 16  # the inputs of a kernel that is worth a prediction
_LARGE_SIZE = 1 << 14  # elements of an output that such a kernel makes of sizes
_MAX_RANK = 8
_MATRIX_PER_S, _OPERATIONS_PER_S, _BYTES_PER_S = 5e10, 1e9, 4e9
_SHARE = 0.25  # of the limit for kernels, above which a thread runs what is only predicted


def first_run(plan: Plan, segment: Segment, slots: Slots, pacer: Pacer, limits: LearningLimits) -> Turns:
    """Runs a segment that has not run yet, and cuts it into chunks for later steps. Raises located errors.

    Instructions of chunks that are slow already run in a thread too. It is one loop without calls of our own, because
    first runs of short segments would otherwise take as long as compiling them.
    """
    instructions = list(chain.from_iterable(segment.chunks))
    known = _known_slow(segment) if segment.slow else ()
    single: tuple[Chunk, ...] = ()
    times: list[float] = []
    clock, limit_s = pacer.clock, _SHARE * limits.thread_s
    ended = clock()
    for number, instruction in enumerate(instructions):
        started = ended
        _, first, second, output = instruction
        has_arrays = type(slots[first]) is _ARRAY or type(slots[second]) is _ARRAY if first else not output
        if has_arrays or number in known:
            if number in known or _is_long(plan, segment.origins[number], instruction, slots, limit_s):
                single = single or tuple([each] for each in instructions)
                yield SlowChunk(plan, segment, single, number, slots)
                times.append(inf)
                (instructions[number],) = single[number]  # it may reuse buffers now
                ended = clock()
                continue
            started = clock()
        try:
            run_instructions((instruction,), slots)
        except Exception as error:  # noqa: BLE001 - as in `run_chunk`
            raise plan.locate_error(segment, number, error)  # noqa: B904 - as in `run_chunk`
        ended = clock()
        times.append(ended - started)
        if ended > pacer.slice.end:
            yield None
            ended = clock()
    _learn(plan, segment, instructions, times, limits)


def _known_slow(segment: Segment) -> set[int]:
    """The instructions of a segment's slow chunks, by number."""
    of_chunks = chain.from_iterable([id(chunk) in segment.slow] * len(chunk) for chunk in segment.chunks)
    return {number for number, is_slow in enumerate(of_chunks) if is_slow}


def _is_long(plan: Plan, node: int, instruction: Instruction, slots: Slots, limit_s: float) -> bool:
    """Whether a kernel may take long, by what it reads; so may one that nobody can predict without loading modules."""
    properties = plan.properties[node]
    values = [slots[slot] for slot in slots_read(instruction)[: len(properties.input_types)]]
    if not _is_large(values) or not may_run_in_thread(properties):
        return False
    if len(values) < len(properties.input_types):  # the others are built into the kernel
        return not is_free(properties.op) and _reading_s(values) > limit_s
    return not is_loaded(properties.op) or _predicted_s(properties, values) > limit_s


def _learn(
    plan: Plan, segment: Segment, instructions: list[Instruction], times: list[float], limits: LearningLimits
) -> None:
    """Cuts a segment by the times of its instructions; one that takes little is right as it is."""
    if len(segment.chunks) > 1 or segment.slow or sum(times) > min(limits.chunk_s / 2, limits.thread_s):
        _cut(plan, segment, instructions, times, limits)
    segment.has_run = True


def _cut(
    plan: Plan, segment: Segment, instructions: list[Instruction], times: list[float], limits: LearningLimits
) -> None:
    """Sets chunks that take half of what a chunk may, and apart from them the instructions that are slow.

    One that was not predicted, and took long, may have run on a busy machine: it is slow once, see `learning`.
    """
    starts: list[int] = []
    apart: dict[int, bool] = {}  # the instructions that are slow, by number: whether at once
    together_s, end = inf, 0  # of the chunk that is open: what it takes, and where it has to end
    for number, took_s in enumerate(times):
        if took_s > limits.thread_s and may_run_in_thread(plan.properties[segment.origins[number]]):
            apart[number] = took_s > VERY_LONG * limits.thread_s
            starts.append(number)
            together_s = inf
            continue
        together_s += took_s
        if together_s > limits.chunk_s / 2 or number == end:
            starts.append(number)
            together_s, end = took_s, number + CHUNK
    segment.chunks = tuple([instructions[start:stop] for start, stop in pairwise([*starts, len(instructions)])])
    ids = {start: id(chunk) for start, chunk in zip(starts, segment.chunks, strict=True) if start in apart}
    segment.slow = frozenset(ids[number] for number, at_once in apart.items() if at_once) or NO_CHUNKS
    segment.slow_once = frozenset(ids[number] for number, at_once in apart.items() if not at_once) or NO_CHUNKS
    segment.reusing = NO_CHUNKS
    segment.joinable = {}
    segment.on_trial = {}
    if len(starts) > 1:
        watch(segment, segment.chunks)


def _predicted_s(properties: NodeProperties, values: list[Any]) -> float:
    """How long a kernel takes on a slow core; 0 where its formulas do not know."""
    inputs = tuple(np.shape(value) for value in values)
    sizes = {i: value for i, value in enumerate(values) if isinstance(value, np.ndarray) and value.size <= _MAX_RANK}
    try:
        outputs = [known_dims(shape) for shape in shapes_of(properties, inputs, sizes)]
        likely = max(inputs, key=prod, default=())  # where the shape function does not know
        types = properties.input_types, properties.output_types
        dims = tuple(likely if shape is None else shape for shape in outputs)
        context = CostContext(properties.op, properties.attrs, inputs, dims, *types)
        rate = _MATRIX_PER_S if is_matrix(properties.op) else _OPERATIONS_PER_S
        return max(flops_of(context) / rate, bytes_of(context) / _BYTES_PER_S)
    except Exception:  # noqa: BLE001 - formulas get shapes that nobody has checked; the kernel says what is wrong
        return 0.0


def _reading_s(values: list[Any]) -> float:
    """How long it takes on a slow core to read all numbers and do something with each."""
    arrays = [value for value in values if isinstance(value, np.ndarray)]
    return max(sum(a.size for a in arrays) / _OPERATIONS_PER_S, sum(a.nbytes for a in arrays) / _BYTES_PER_S)


def _is_large(values: list[Any]) -> bool:
    """Whether inputs are large, or hold sizes of something large."""
    num_bytes = 0
    for value in values:
        if not isinstance(value, np.ndarray):
            continue
        num_bytes += value.nbytes
        if (
            value.dtype.kind == "i"
            and value.ndim == 1
            and 0 < value.size <= _MAX_RANK
            and prod(value.tolist()) > _LARGE_SIZE
        ):
            return True
    return num_bytes > _LARGE_BYTES
