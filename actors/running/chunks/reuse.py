"""Instructions that write their result into the buffer of an input which nothing reads afterwards.

    s5 = Exp(s5)        np.exp(x) would allocate; np.exp(x, out=x) writes over x, which nobody needs any more

An instruction whose output has the slot of an input is a candidate: the allocator of slots gives an output such a slot
only if the input is not needed any more. At run time the array is overwritten only if the slot has the sole reference
to it; a view, a variable, a rendezvous, a fetch or the caller of the step would each hold another.

Counting references costs about 0.3 us, so only instructions of slow chunks are replaced (`learning.learn`), and those
that reuse nothing in some runs, because their tensors are small, are put back.
"""

from __future__ import annotations

from sys import getrefcount
from typing import TYPE_CHECKING

import numpy as np

from ...plans.instructions import Instruction, Slots, SlotStep, slots_read, whole

if TYPE_CHECKING:
    from ....devices.kernels.in_place import Into
    from ....devices.kernels.registry import Kernel

_WORTH_BYTES = 1 << 14  # for smaller arrays an allocation costs less than these checks
_TENSORS = (np.ndarray, np.generic)  # no Variable: only its kernel may read the array
_SOLE = 3  # references to an array in one slot: the slot, a local name, the argument of getrefcount


def reusing(instruction: Instruction, into: Into) -> Instruction:
    """An instruction that reuses a buffer where it can; `instruction` itself if its output has no input's slot."""
    kernel, first, second, out = instruction
    if not first or out not in (first, second):
        return instruction
    reused: set[int] = set()
    step = _binary(kernel, into, first, second, out, reused) if second else _unary(kernel, into, first, reused)
    vars(step).update(plain=instruction, reused=reused)
    return whole(step, slots_read(instruction), (out,))


def kept(instruction: Instruction) -> Instruction:
    """The instruction itself, or what `reusing` was given for it if it has never reused a buffer."""
    facts = getattr(instruction[0], "__dict__", {})
    plain: Instruction = facts.get("plain", instruction)
    return plain if not facts.get("reused", True) else instruction


def _unary(kernel: Kernel, into: Into, slot: int, reused: set[int]) -> SlotStep:
    def run(slots: Slots) -> None:
        value = slots[slot]
        if (
            type(value) is np.ndarray
            and value.nbytes >= _WORTH_BYTES
            and getrefcount(value) == _SOLE
            and _owns_memory(value)
        ):
            into(value, out=value)
            reused.add(slot)
        else:
            slots[slot] = kernel(value)

    return run


def _binary(kernel: Kernel, into: Into, first: int, second: int, out: int, reused: set[int]) -> SlotStep:
    other_slot = first if out == second else second

    def run(slots: Slots) -> None:
        target = slots[out]
        if type(target) is np.ndarray and target.nbytes >= _WORTH_BYTES and getrefcount(target) == _SOLE:
            other = slots[other_slot]
            if isinstance(other, _TENSORS) and _owns_memory(target) and _fits(other.shape, target.shape):
                into(slots[first], slots[second], out=target)
                reused.add(out)
                return
        slots[out] = kernel(slots[first], slots[second])

    return run


def _owns_memory(value: np.ndarray[tuple[int, ...], np.dtype[np.generic]]) -> bool:
    return value.base is None and value.flags.writeable


def _fits(shape: tuple[int, ...], whole_shape: tuple[int, ...]) -> bool:
    """Whether `shape` broadcasts to `whole_shape`, so that the result has that shape."""
    if shape == whole_shape:
        return True
    if len(shape) > len(whole_shape):
        return False
    return all(a in (1, b) for a, b in zip(reversed(shape), reversed(whole_shape), strict=False))
