"""Shape functions of queues, barriers, accumulators and staging areas.

A handle is a scalar; in the first version of the ops it is a vector of two strings. The shape of an element that is
taken out is unknown, since only the resource knows it.
"""

from __future__ import annotations

from collections.abc import Sequence

from ....errors import InvalidArgumentError
from ...analysis.shape_functions import (
    ShapeContext,
    merge_dims,
    no_outputs,
    scalar,
    shape_fn,
    unchanged,
    unknown,
    with_rank,
    with_rank_at_least,
)
from ...dtypes import Shape

_KINDS = ("FIFOQueue", "RandomShuffleQueue", "PaddingFIFOQueue", "PriorityQueue")
_MAPS = ("Map", "OrderedMap")

shape_fn(*(f"{kind}V2" for kind in _KINDS))(scalar)
shape_fn("QueueSizeV2")(unchanged)
shape_fn("QueueIsClosed", "QueueIsClosedV2", "AccumulatorNumAccumulated", "ResourceAccumulatorNumAccumulated")(scalar)
shape_fn("StageSize", "MutexV2", "MutexLock")(scalar)


shape_fn(
    "QueueDequeue",
    "QueueDequeueV2",
    "QueueDequeueMany",
    "QueueDequeueUpTo",
    "QueueDequeueUpToV2",
    "BarrierTakeMany",
    "Unstage",
    "StagePeek",
    *(f"{kind}{what}" for kind in _MAPS for what in ("Unstage", "UnstageNoKey", "Peek")),
)(unknown)
shape_fn(*(f"{kind}{what}" for kind in _MAPS for what in ("Size", "IncompleteSize")))(scalar)


@shape_fn(
    *_KINDS,
    "FakeQueue",
    "Barrier",
    "ConditionalAccumulator",
    "ResourceConditionalAccumulator",
    "SparseConditionalAccumulator",
)
def two_strings(c: ShapeContext) -> Sequence[Shape]:
    """A handle of two strings."""
    return ((2,),)


shape_fn(
    "QueueEnqueue",
    "QueueEnqueueV2",
    "QueueEnqueueMany",
    "QueueEnqueueManyV2",
    "QueueCloseV2",
    "Stage",
    "StageClear",
    *(f"{kind}{what}" for kind in _MAPS for what in ("Stage", "Clear")),
    "ConsumeMutexLock",
)(no_outputs)


@shape_fn("QueueSize", "BarrierReadySize", "BarrierIncompleteSize")
def size(c: ShapeContext) -> Sequence[Shape]:
    """A number."""
    _two_strings(c.inputs[0])
    return ((),)


@shape_fn("QueueClose", "BarrierClose")
def close(c: ShapeContext) -> Sequence[Shape]:
    """No output."""
    _two_strings(c.inputs[0])
    return ()


@shape_fn("QueueDequeueManyV2")
def dequeue_many(c: ShapeContext) -> Sequence[Shape]:
    """Unknown: only the queue knows the shape of its elements."""
    count = c.constant(1)
    if count is not None and count.ndim == 0 and count < 0:
        raise InvalidArgumentError(f"Input 'n' must be >= 0, but is {count}")
    return unknown(c)


@shape_fn("BarrierInsertMany")
def insert_many(c: ShapeContext) -> Sequence[Shape]:
    """No output; one value per key."""
    _two_strings(c.inputs[0])
    (keys,) = with_rank(c.inputs[1], 1)
    values = with_rank_at_least(c.inputs[2], 1)
    if values is not None:
        merge_dims(keys, values[0])
    return ()


@shape_fn(
    "AccumulatorApplyGradient",
    "ResourceAccumulatorApplyGradient",
    "AccumulatorSetGlobalStep",
    "ResourceAccumulatorSetGlobalStep",
    "SparseAccumulatorApplyGradient",
)
def at_step(c: ShapeContext) -> Sequence[Shape]:
    """No output; the step is a scalar."""
    with_rank(c.inputs[1], 0)
    return ()


@shape_fn("AccumulatorTakeGradient", "ResourceAccumulatorTakeGradient", "SparseAccumulatorTakeGradient")
def take_gradient(c: ShapeContext) -> Sequence[Shape]:
    """Unknown: only the accumulator knows the shape of gradients."""
    with_rank(c.inputs[1], 0)
    return unknown(c)


def _two_strings(shape: Shape) -> None:
    """InvalidArgumentError unless `shape` may be that of a handle of two strings."""
    merge_dims(with_rank(shape, 1)[0], 2)
