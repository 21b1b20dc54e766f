"""Instructions that store their result in the buffer of an input that nobody will read again.

Flows in: an instruction that stores into the slot of one of its inputs: so says the slot allocator that the value dies
there. Flows out: an instruction that computes the same, into the array of the dying value if that is nobody else's.
Always holds: an array is written to only if the slot holds the sole reference to it. Whatever might still look at it,
a view, a variable, a rendezvous, a fetch or the caller of the step, would hold another.

Asking costs some 0.3 us, so only instructions of chunks that were seen to take long are changed (`learning.learn`).
"""

from __future__ import annotations

from sys import getrefcount
from typing import TYPE_CHECKING

import numpy as np

from ..plans.instructions import Instruction, Slots, Step, slots_read, whole

if TYPE_CHECKING:
    from ...devices.kernels.in_place import Into
    from ...devices.kernels.registry import Kernel

_WORTH_BYTES = 1 << 14  # below, allocation costs less than asking whether it can be saved
_TENSORS = (np.ndarray, np.generic)  # and no Variable, whose kernel will read it
_OURS = 3  # references to an array that is in one slot, in a variable, and an argument of getrefcount


def reusing(instruction: Instruction, into: Into) -> Instruction:
    """`instruction` in the form that reuses a buffer where it can; itself if none of its inputs dies in it."""
    kernel, first, second, out = instruction
    if not first or out not in (first, second):
        return instruction
    step = _binary(kernel, into, first, second, out) if second else _unary(kernel, into, first)
    return whole(step, slots_read(instruction), (out,))


def _unary(kernel: Kernel, into: Into, slot: int) -> Step:
    def run(slots: Slots) -> None:
        value = slots[slot]
        if type(value) is np.ndarray and value.nbytes >= _WORTH_BYTES and getrefcount(value) == _OURS and _owns(value):
            into(value, out=value)
        else:
            slots[slot] = kernel(value)

    return run


def _binary(kernel: Kernel, into: Into, first: int, second: int, out: int) -> Step:
    other_slot = first if out == second else second

    def run(slots: Slots) -> None:
        target = slots[out]
        if type(target) is np.ndarray and target.nbytes >= _WORTH_BYTES and getrefcount(target) == _OURS:
            other = slots[other_slot]
            if isinstance(other, _TENSORS) and _owns(target) and _fits(other.shape, target.shape):
                into(slots[first], slots[second], out=target)
                return
        slots[out] = kernel(slots[first], slots[second])

    return run


def _owns(value: np.ndarray[tuple[int, ...], np.dtype[np.generic]]) -> bool:
    return value.base is None and value.flags.writeable


def _fits(shape: tuple[int, ...], whole_shape: tuple[int, ...]) -> bool:
    """Whether a tensor of `shape` broadcasts to `whole_shape`."""
    if shape == whole_shape:
        return True
    if len(shape) > len(whole_shape):
        return False
    return all(a in (1, b) for a, b in zip(reversed(shape), reversed(whole_shape), strict=False))
