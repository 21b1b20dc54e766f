"""The checker of plans, the last stage: slots are written before they are read, and every wait ends.

    a segment has an instruction for each of its nodes; its waits are the messages, calls and segments that unlock it
    segment 0 waits for nothing and comes before all others, which are reached from it, from messages and calls
    an instruction reads slots that are filled: constants, arguments, messages and outputs of calls that its segment
        waits for, and slots written before, in its own segment or one that it comes after
    a slot that several segments write is read only in a segment that has written it before
    a result is in a slot that is filled; deferred nodes are launched once; a key is sent once and received once

A broken rule is a mistake of this package. Tests check all plans they compile (`graph.invariants.checking`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from ...errors import InternalError
from ...graph.arrays import ready_order
from .instructions import FIRST_FREE_SLOT, Instruction, slots_read, slots_written
from .plan import ChoiceBranch, DistributedLoop, Inner, LocalChoice, LocalLoop, Plan, Segment, Stretch
from .printer import instructions_of, plan_text


def check_plan(plan: Plan) -> None:
    """Raises InternalError for the first rule that does not hold of a plan, or of a loop in it."""
    before = _before(plan)
    _check_messages(plan)
    _check_slots(plan, before)
    _check_results(plan)
    for deferred in plan.deferred:
        if isinstance(deferred.work, DistributedLoop):
            check_plan(deferred.work.plan)
        elif isinstance(deferred.work, LocalLoop):
            check_local_work(deferred.work)


def _broken(plan: Plan, rule: str, violation: str) -> InternalError:
    return InternalError(f"plan, rule {rule!r}: {violation}; this is a mistake of Partita\n{plan_text(plan)}")


def _unlocked(plan: Plan) -> Iterator[tuple[int, ...]]:
    """By message, then by call, then by segment: the segments that wait for it."""
    yield from (arrival.segments for arrival in plan.arrivals)
    yield from (deferred.segments for deferred in plan.deferred)
    yield from (segment.unlocks for segment in plan.segments)


def _before(plan: Plan) -> list[int]:
    """By segment, as bits: the segments that have ended when it begins. Raises for waits that never end."""
    counted: Counter[int] = Counter(after for segments in _unlocked(plan) for after in segments)
    for number, segment in enumerate(plan.segments):
        if segment.waits != counted[number]:
            violation = f"segment {number} waits for {segment.waits}, {counted[number]} unlock it"
            raise _broken(plan, "a segment waits for what unlocks it", violation)
        if bool(segment.waits) == (number == 0):
            raise _broken(plan, "segment 0 alone waits for nothing", f"segment {number} waits for {segment.waits}")
        if len(segment.origins) != sum(map(len, segment.chunks)):
            raise _broken(plan, "an instruction has a node", f"segment {number} has other numbers of them")
    count = len(plan.segments)
    num_before: Counter[int] = Counter(after for segment in plan.segments for after in segment.unlocks)
    order = ready_order([segment.unlocks for segment in plan.segments], map(num_before.__getitem__, range(count)))
    if len(order) < count:
        raise _broken(plan, "segments do not wait for each other in a circle", f"{len(order)} of them can run")
    before = [int(number > 0) for number in range(count)]  # segment 0 is posted before any receive
    for number in order:
        for after in plan.segments[number].unlocks:
            before[after] |= before[number] | 1 << number
    return before


def _check_messages(plan: Plan) -> None:
    origins = Counter(node for segment in plan.segments for node in segment.origins)
    for node in [*plan.sends.last.tolist(), *(deferred.node for deferred in plan.deferred)]:
        if origins[node] != 1:
            raise _broken(plan, "a send or launch has one instruction", f"{plan.names[node]!r} has {origins[node]}")
    for keys in (plan.sends.keys, plan.arrivals.keys):
        twice = next((key for key, count in Counter(keys).items() if count > 1), None)
        if twice is not None and not plan.unchecked:  # a graph may come with transfers of its own, right or wrong
            raise _broken(plan, "a key is sent once and received once", f"{twice!r} is there several times")


def _held(plan: Plan) -> set[int]:
    """The slots that hold something before the first instruction."""
    held = {slot for slot, value in enumerate(plan.template) if value is not None}
    return held | {argument.slot for argument in plan.arguments}


def _check_slots(plan: Plan, before: Sequence[int]) -> None:
    held, arrived = _held(plan), _arrived(plan)
    writers: dict[int, set[int]] = {}
    for number, segment in enumerate(plan.segments):
        for slot in _written(segment):
            writers.setdefault(slot, set()).add(number)
    for number, segment in enumerate(plan.segments):
        ended = before[number] | 1 << number
        reads = {slot for _, instruction in instructions_of(segment) for slot in slots_read(instruction)}
        there = {slot for slot in reads if slot in held and slot not in writers}
        there.update(slot for slot in reads if any(ended >> after & 1 for after in arrived.get(slot, ())))
        for slot in reads & writers.keys():
            if len(writers[slot]) == 1 and before[number] >> min(writers[slot]) & 1:
                there.add(slot)
        _check_order(plan, instructions_of(segment), there)


def _written(segment: Segment) -> Iterator[int]:
    for _, instruction in instructions_of(segment):
        yield from slots_written(instruction)


def _arrived(plan: Plan) -> dict[int, tuple[int, ...]]:
    """By slot of a message or of an output of a call: the segments that wait for it."""
    waiting: dict[int, tuple[int, ...]] = {}
    for arrival in plan.arrivals:
        waiting.update(dict.fromkeys(range(arrival.slot, arrival.slot + arrival.size), arrival.segments))
    for deferred in plan.deferred:
        waiting.update(dict.fromkeys((*deferred.outputs, deferred.flag), deferred.segments))
    return waiting


def _check_order(plan: Plan, instructions: Iterable[tuple[int, Instruction]], there: set[int]) -> None:
    """Walks instructions in their order; `there` are the filled slots, to which it adds those that they write."""
    for node, instruction in instructions:
        missing = set(slots_read(instruction)) - there
        if missing:
            violation = f"{plan.names[node]!r} reads {sorted(missing)}"
            raise _broken(plan, "a slot is written before it is read", violation)
        writes = slots_written(instruction)
        if any(slot >= len(plan.template) for slot in writes):
            raise _broken(plan, "a slot is one of the plan's", f"{plan.names[node]!r} writes {writes}")
        there.update(writes)


def _check_results(plan: Plan) -> None:
    filled = _held(plan).union(*map(_written, plan.segments))
    filled.update(_arrived(plan))
    for result in plan.results:
        if result.slot not in filled or result.slot < FIRST_FREE_SLOT:
            raise _broken(plan, "a result is in a slot that is filled", f"result {result.index} is not")


def check_local_work(work: LocalLoop | LocalChoice) -> None:
    """Raises InternalError unless a loop or a choice, and those inside, write every slot before they read it."""
    if isinstance(work, LocalLoop):
        _check_local_loop(work)
        return
    for branch in work.branches:
        there = _held(branch.plan).union(branch.arguments)
        _check_stretches(branch, branch.stretches, there)
        _check_there(branch, branch.results, there)


def _check_local_loop(loop: LocalLoop) -> None:
    there = _held(loop.plan).union(loop.arguments, loop.counted)
    _check_stretches(loop, loop.condition, there)
    _check_there(loop, (loop.predicate, *loop.exits), there)
    _check_stretches(loop, loop.body, there)
    _check_there(loop, loop.next_values, there)


def _check_stretches(loop: LocalLoop | ChoiceBranch, stretches: Sequence[Stretch], there: set[int]) -> None:
    for stretch in stretches:
        if isinstance(stretch, Inner):
            _check_there(loop, (*stretch.inputs, *stretch.watched), there)
            check_local_work(stretch.work)
            there.update(stretch.outputs)
        else:
            _check_order(loop.plan, instructions_of(stretch), there)


def _check_there(loop: LocalLoop | ChoiceBranch, slots: Iterable[int], there: set[int]) -> None:
    missing = set(slots) - there
    if missing:
        raise _broken(loop.plan, "a slot is written before it is read", f"the loop reads {sorted(missing)}")
