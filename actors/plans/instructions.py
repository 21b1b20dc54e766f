"""Instructions: what a plan does, in forms from the cheapest to those that look for dead tensors.

An instruction is a tuple `(k, i, j, o)`: a kernel, a step or a key, and slots. Its slots say which form it has:

    i     j     o     what is done                        made for
    > 0   > 0   any   slots[o] = k(slots[i], slots[j])    a kernel of two inputs and one output
    > 0   0     > 0   slots[o] = k(slots[i])              a kernel of one input and one output
    0     0     > 0   slots[SEND_SLOT](k, slots[o])       a send: k is the key of its message
    0     0     0     k(slots)                            all else: k, a step, loads and stores by itself (`whole`)

A step returns DEAD if its node was dead. Slot 0 means none. Slot 1 holds the function that sends, slot 2 the list in
which a traced step records, slot 3 a function that returns the running part. From slot 4 on a slot holds a value, a
`Variable` (the value of a reference), or DEAD. Only the instructions of nodes that may be dead look for DEAD.

    y = Neg(x), z = Add(y, y), z is sent         (neg, 4, 0, 5)  (add, 5, 5, 5)  (key, 0, 0, 5)

Many graphs send nearly as often as they compute. A send has no function of its own, so that the garbage collector finds
only atoms in its instruction and forgets the tuple after its first look.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter, itemgetter
from typing import Any, Final

import numpy as np

from ...devices.kernels.registry import Kernel
from ...devices.state import Variable
from ...errors import InvalidArgumentError
from ...graph.analysis.dims import shape_text
from .numbering import SlotNumber

# What a slot holds is decided by the graph at run time: a tensor of any type, a Variable, or DEAD.
Slots = list[Any]
SlotStep = Callable[[Slots], object]
# Any: a kernel, a step, or the key of a send; the slots say which, and types cannot follow them.
Instruction = tuple[Any, int, int, int]

NO_SLOT: Final = SlotNumber(0)
SEND_SLOT: Final = SlotNumber(1)
TRACE_SLOT: Final = SlotNumber(2)
PART_SLOT: Final = SlotNumber(3)
FIRST_FREE_SLOT: Final = SlotNumber(4)


class _Dead:
    """The type of DEAD."""

    __slots__ = ()
    nbytes = 0

    def __repr__(self) -> str:
        return "DEAD"


DEAD: Final = _Dead()


def run_instructions(instructions: Iterable[Instruction], slots: Slots) -> None:
    """The inner loop of every executor."""
    for k, i, j, o in instructions:
        if j:
            slots[o] = k(slots[i], slots[j])
        elif i:
            slots[o] = k(slots[i])
        elif o:
            slots[SEND_SLOT](k, slots[o])
        else:
            k(slots)


def whole(step: SlotStep, reads: Sequence[int] = (), writes: Sequence[int] = ()) -> Instruction:
    """The instruction of a step that loads and stores by itself.

    `reads` and `writes` are its slots, for printers and checkers. They are kept on the function, so that a step with
    slots must be a function of this instruction alone.
    """
    if reads or writes:
        vars(step).update(reads=tuple(reads), writes=tuple(writes))
    return step, 0, 0, 0


def slots_read(instruction: Instruction) -> tuple[int, ...]:
    """The slots of the values that an instruction reads."""
    step, first, second, output = instruction
    used: tuple[int, ...] = (first, second) if first else (output,) if output else getattr(step, "reads", ())
    return tuple(slot for slot in used if slot >= FIRST_FREE_SLOT)


def slots_written(instruction: Instruction) -> tuple[int, ...]:
    """The slots that an instruction writes."""
    step, first, _, output = instruction
    used: tuple[int, ...] = (output,) if first else getattr(step, "writes", ())
    return tuple(slot for slot in used if slot >= FIRST_FREE_SLOT)


def plain(kernel: Kernel, inputs: Sequence[int], outputs: Sequence[int]) -> Instruction:
    """The cheapest instruction for a kernel: `inputs` and `outputs` are slots."""
    if len(outputs) == 1 and 1 <= len(inputs) <= 2:
        return kernel, inputs[0], inputs[1] if len(inputs) == 2 else 0, outputs[0]
    return whole(step_of(kernel, inputs, outputs), inputs, outputs)


def always(value: Any) -> Kernel:
    """The kernel of a constant that waits for other nodes, whose values it ignores."""
    return lambda *_inputs: value


def values_of(inputs: Sequence[int]) -> Callable[[Slots], Sequence[Any]]:  # Any: tensors of any type
    """A function from slots to `[slots[i] for i in inputs]`, in one call of C where there are two or more."""
    ins = tuple(inputs)
    return itemgetter(*ins) if len(ins) > 1 else lambda slots: [slots[i] for i in ins]


def step_of(kernel: Kernel, inputs: Sequence[int], outputs: Sequence[int]) -> SlotStep:
    """Calls `kernel` with the values of `inputs` and stores what it returns in `outputs`."""
    read, outs = values_of(inputs), tuple(outputs)
    if len(outs) == 1:
        out = outs[0]

        def store_one(slots: Slots) -> None:
            slots[out] = kernel(*read(slots))

        return store_one
    if not outs:

        def store_none(slots: Slots) -> None:
            kernel(*read(slots))

        return store_none
    if len(outs) == 2:
        first, second = outs

        def store_two(slots: Slots) -> None:
            slots[first], slots[second] = kernel(*read(slots))

        return store_two

    def store_many(slots: Slots) -> None:
        for o, value in zip(outs, kernel(*read(slots)), strict=True):
            slots[o] = value

    return store_many


def store(value: Any, out: int) -> SlotStep:
    """Stores a value that was known when the plan was compiled."""

    def put(slots: Slots) -> None:
        slots[out] = value

    return put


def identity(value: Any) -> Any:
    """The kernel of ops that pass their input on."""
    return value


def dereferencing(kernel: Kernel, is_reference: Sequence[bool]) -> Kernel:
    """`kernel`, with the variable read first for each input that `is_reference` marks.

    Raises FailedPreconditionError when it is called with an uninitialised variable.
    """
    marks = tuple(is_reference)
    if marks == (True,):
        return lambda value: kernel(read(value))
    if marks == (True, False):
        return lambda x, y: kernel(read(x), y)
    if marks == (False, True):
        return lambda x, y: kernel(x, read(y))

    def read_and_call(*values: Any) -> Any:
        return kernel(*[read(v) if mark else v for v, mark in zip(values, marks, strict=True)])

    return read_and_call


def read(value: Any) -> Any:
    """The array of a variable; other values (and DEAD) as they are."""
    return value.read() if isinstance(value, Variable) else value


def owner(value: Any) -> object:
    """The array that owns the memory of a value, or the value itself."""
    while isinstance(value, np.ndarray) and value.base is not None:
        value = value.base
    return value


def passed_on(value: Any) -> Any:
    """The kernel of nodes that pass their input on; the node that computes with a variable reads it.

    Raises FailedPreconditionError for a variable that is not initialised.
    """
    if isinstance(value, Variable):
        value.read()
    return value


def nothing(_slots: Slots) -> None:
    """The step of nodes that only order others."""


def send(key: str, value: int, convert: Kernel = identity) -> Instruction:
    """Sends a value that cannot be dead; `convert` is applied to it first."""
    if convert is identity:
        return key, 0, 0, value
    return lambda tensor, send: send(key, convert(tensor)), value, SEND_SLOT, 0


def guarded(step: SlotStep, watched: Sequence[int], outputs: Sequence[int], flag: int) -> Instruction:
    """Runs `step` unless one of the `watched` slots is dead: then all `outputs` are dead.

    `flag` is 0, or the slot of a deadness flag, for nodes that wait for this one by a control edge.
    """
    ins, outs = tuple(watched), (*outputs, flag) if flag else tuple(outputs)

    def run_if_alive(slots: Slots) -> object:
        for i in ins:
            if slots[i] is DEAD:
                for o in outs:
                    slots[o] = DEAD
                return DEAD
        step(slots)
        if flag:
            slots[flag] = None
        return None

    return whole(run_if_alive, ins, outs)


def if_alive(kernel: Kernel, inputs: Sequence[int], output: int) -> Instruction:
    """Computes one output from one or two inputs, a dead one if an input is dead."""
    if len(inputs) == 1:
        return lambda x: DEAD if x is DEAD else kernel(x), inputs[0], 0, output
    return lambda x, y: DEAD if x is DEAD or y is DEAD else kernel(x, y), inputs[0], inputs[1], output


def send_either(key: str, value: int, watched: Sequence[int], convert: Kernel = identity) -> Instruction:
    """Sends a value, or a dead tensor if it or one of the `watched` slots is dead: a send runs in any case."""
    if not watched:

        def send_one(tensor: Any, send: Callable[..., None]) -> None:
            if tensor is DEAD:
                send(key, None, True)
            else:
                send(key, convert(tensor))

        return send_one, value, SEND_SLOT, 0
    ins = (value, *watched)

    def send_values(slots: Slots) -> None:
        if any(slots[i] is DEAD for i in ins):
            slots[SEND_SLOT](key, None, True)
        else:
            slots[SEND_SLOT](key, convert(slots[value]))

    return whole(send_values, ins)


_NBYTES = attrgetter("nbytes")


class Bundle(tuple[Any, ...]):
    """Several tensors that travel as one message; each may be DEAD."""

    __slots__ = ()

    @property
    def nbytes(self) -> int:
        """The sizes of the tensors together, as a rendezvous counts them."""
        try:
            return sum(map(_NBYTES, self))
        except AttributeError:  # a variable has no size
            return sum(getattr(value, "nbytes", 0) for value in self)


def send_bundle(key: str, values: Sequence[int]) -> Instruction:
    """Sends two or more values, dead or alive, as one message."""
    gather = itemgetter(*values)

    def send_values(slots: Slots) -> None:
        slots[SEND_SLOT](key, Bundle(gather(slots)))

    return whole(send_values, values)


def send_bundle_either(key: str, values: Sequence[int], watched: Sequence[Sequence[int]]) -> Instruction:
    """Sends values as one message; a tensor is dead if its value or one of its `watched` slots is."""
    if not any(watched):
        return send_bundle(key, values)
    sources = [(value, tuple(others)) for value, others in zip(values, watched, strict=True)]

    def send_values(slots: Slots) -> None:
        tensors = [DEAD if any(slots[i] is DEAD for i in others) else slots[value] for value, others in sources]
        slots[SEND_SLOT](key, Bundle(tensors))

    return whole(send_values, [*values, *(slot for others in watched for slot in others)])


def holds(predicate: Any) -> bool:
    """Whether the predicate of a Switch or a loop is true; InvalidArgumentError unless it is a scalar."""
    return bool(predicate if type(predicate) is np.bool_ else _scalar(predicate))


def _scalar(value: Any) -> Any:
    """What a Switch chooses by; InvalidArgumentError unless it is a scalar."""
    if np.ndim(value):
        raise InvalidArgumentError(f"The second input must be a scalar, but it has shape {shape_text(np.shape(value))}")
    return value


def switch(value: Any, predicate: Any) -> tuple[Any, Any]:
    """The kernel of Switch: the value goes to output 1 if the predicate holds and to output 0 otherwise."""
    return (DEAD, value) if holds(predicate) else (value, DEAD)


def switch_to(inputs: Sequence[int], outputs: Sequence[int]) -> Instruction:
    """A Switch without control inputs that may be dead and without a deadness flag of its own."""
    value, predicate = inputs
    when_false, when_true = outputs

    def choose(slots: Slots) -> object:
        data, chooses = slots[value], slots[predicate]
        if data is DEAD or chooses is DEAD:
            slots[when_false] = slots[when_true] = DEAD
            return DEAD
        if chooses is np.True_:  # numpy has a single True
            slots[when_false] = DEAD
            slots[when_true] = data
        else:
            slots[when_false], slots[when_true] = switch(data, chooses)
        return None

    return whole(choose, inputs, outputs)


def switch_n(count: int) -> Kernel:
    """The kernel of _SwitchN: the value goes to the output of that index, to the last one for an index out of range."""

    def choose(value: Any, index: Any) -> Any:
        chosen = int(index) if 0 <= int(_scalar(index)) < count else count - 1
        return value if count == 1 else tuple(value if i == chosen else DEAD for i in range(count))

    return choose


def merge(inputs: Sequence[int], outputs: Sequence[int], convert: Kernel = identity) -> Instruction:
    """Passes on the first input that is alive, and its index; dead if none is, whatever its control inputs are."""
    ins = tuple(inputs)
    value_out, index_out = outputs

    def take_first(slots: Slots) -> object:
        for index, i in enumerate(ins):
            value = slots[i]
            if value is not DEAD:
                slots[value_out], slots[index_out] = convert(value), np.int32(index)
                return None
        slots[value_out] = slots[index_out] = DEAD
        return DEAD

    return whole(take_first, inputs, outputs)


def launch(number: int, inputs: Sequence[int], convert: Kernel) -> Instruction:
    """Starts the deferred node of that number; `convert` makes a tuple of its inputs."""
    ins = tuple(inputs)

    def begin(slots: Slots) -> None:
        slots[PART_SLOT]().launch(number, convert(*[slots[i] for i in ins]))

    return whole(begin, ins)


def launch_either(number: int, inputs: Sequence[int], watched: Sequence[int], convert: Kernel) -> Instruction:
    """Starts a deferred node, or makes its outputs dead if an input or one of the `watched` slots is."""
    ins, seen = tuple(inputs), (*inputs, *watched)

    def begin(slots: Slots) -> object:
        part = slots[PART_SLOT]()
        if any(slots[i] is DEAD for i in seen):
            part.skip(number)
            return DEAD
        part.launch(number, convert(*[slots[i] for i in ins]))
        return None

    return whole(begin, seen)


def all_inputs(*values: Any) -> tuple[Any, ...]:
    """The inputs of a deferred node as they are."""
    return values
