"""How long ops take that pass references: a fixed time of the host, whatever the size of the tensors.

Measured in traces (RunMetadata, FULL_TRACE) of TensorFlow 2.21 on two cores of an AMD EPYC server, 240 runs of each op;
medians in microseconds with elements of 64 bytes and of 1 MiB:

    TensorListSetItem, GetItem        0.5, 0.3      0.8, 0.4        FIFOQueueV2       3.4     6.9
    StackPushV2, StackPopV2           0.7, 0.5      0.9, 0.7        StackV2           5.7     12
    TensorArrayWriteV3, ReadV3        1.0, 0.9      1.7, 1.3        TensorArrayV3     8.7     14
    Stage, Unstage                    0.8, 0.8      1.1, 1.1        AddV2 of scalars  1.5     5.4
    QueueEnqueueV2, QueueDequeueV2    1.7, 2.4      2.3, 3.0

The size makes no difference beyond the noise of caches, where a copy of 1 MiB takes 100 us. What does copy, by its
times with 8 elements of 1 MiB (0.8 to 2.6 ms): stacks, gathers, concatenations, splits and scatters of lists and of
arrays, enqueues and dequeues of many.
"""

from __future__ import annotations

PASS_NS = 1000
"""an element is put into a list, a stack, an array or a staging area, or taken out; or something is asked of it"""
QUEUE_NS = 2000
"""the same of a queue, a barrier, an accumulator or a table, which others wait at"""
MAKE_NS = 5000
"""a resource or a description of one is made: a list, a queue, a table, a dataset, an iterator"""
LOW_PERCENT, HIGH_PERCENT = 50, 300
"""between which shares of these times four of five of the measured runs were"""
