"""Costs of queues and what else makes nodes wait: elements pass by reference, batches of them are copied.

The time is what an op takes beside waiting.
"""

from __future__ import annotations

from math import prod

from ..host_times import MAKE_NS, PASS_NS, QUEUE_NS
from ..op_cost import (
    CostContext,
    bytes_moved,
    copied_inputs,
    copied_outputs,
    flops,
    input_bytes,
    moves,
    output_bytes,
    takes_host_time,
)

takes_host_time(
    MAKE_NS,
    *("Barrier", "ConditionalAccumulator", "ResourceConditionalAccumulator", "SparseConditionalAccumulator"),
    *("FIFOQueue", "FIFOQueueV2", "FakeQueue", "PaddingFIFOQueue", "PaddingFIFOQueueV2", "MutexV2"),
    *("PriorityQueue", "PriorityQueueV2", "RandomShuffleQueue", "RandomShuffleQueueV2"),
)
takes_host_time(
    PASS_NS,
    *("Stage", "StageClear", "StagePeek", "StageSize", "Unstage"),
    *(
        f"{kind}{op}"
        for kind in ("Map", "OrderedMap")
        for op in ("Clear", "IncompleteSize", "Peek", "Size", "Stage", "Unstage", "UnstageNoKey")
    ),
)
takes_host_time(
    QUEUE_NS,
    *("AccumulatorNumAccumulated", "AccumulatorSetGlobalStep"),
    *("ResourceAccumulatorNumAccumulated", "ResourceAccumulatorSetGlobalStep"),
    *("BarrierClose", "BarrierIncompleteSize", "BarrierReadySize", "ConsumeMutexLock", "MutexLock"),
    *("QueueClose", "QueueCloseV2", "QueueDequeue", "QueueDequeueV2", "QueueEnqueue", "QueueEnqueueV2"),
    *("QueueIsClosed", "QueueIsClosedV2", "QueueSize", "QueueSizeV2"),
)

_FROM_BATCH = ("BarrierInsertMany", "QueueEnqueueMany", "QueueEnqueueManyV2")
_TO_BATCH = (
    *("BarrierTakeMany", "QueueDequeueMany", "QueueDequeueManyV2"),
    *("QueueDequeueUpTo", "QueueDequeueUpToV2"),
)
moves(*_FROM_BATCH, *_TO_BATCH)
bytes_moved(*_FROM_BATCH)(copied_inputs)
bytes_moved(*_TO_BATCH)(copied_outputs)

_APPLY = ("AccumulatorApplyGradient", "ResourceAccumulatorApplyGradient", "SparseAccumulatorApplyGradient")
_TAKE = ("AccumulatorTakeGradient", "ResourceAccumulatorTakeGradient", "SparseAccumulatorTakeGradient")


@flops(*_APPLY)
def added_gradients(c: CostContext) -> int:
    """One addition per element of the gradient."""
    return max(map(prod, c.inputs), default=0)


@bytes_moved(*_APPLY)
def added_gradient_bytes(c: CostContext) -> int:
    """The gradient and the sum are read, the sum is written."""
    return 3 * input_bytes(c)


@flops(*_TAKE)
def averaged_gradients(c: CostContext) -> int:
    """One division per element of the average."""
    return max(map(prod, c.outputs), default=0)


@bytes_moved(*_TAKE)
def averaged_gradient_bytes(c: CostContext) -> int:
    """The sum is read, the average is written."""
    return 2 * output_bytes(c)
