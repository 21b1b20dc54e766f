"""What the compiler numbers. All of these are small integers, and they mean different things.

    NodeNumber      a row of the columns of a partition: nodes 0 to n - 1 in topological order
    ValueNumber     a tensor that one node makes and others read, from 1 on; 0 stands for none
    SlotNumber      the place of a value in the slots of a step, from 4 on; several values take turns in it
    SegmentNumber   the instructions that wait for the same messages; segment 0 waits for nothing

An array has a row per node, edge, value or transfer, and its comment or docstring says which.
"""

from __future__ import annotations

from typing import NewType

NodeNumber = NewType("NodeNumber", int)
ValueNumber = NewType("ValueNumber", int)
SlotNumber = NewType("SlotNumber", int)
SegmentNumber = NewType("SegmentNumber", int)
