"""Plans and drafts as text, to read what a device does, and to compare in tests. `compiler` opens with an example.

`s5` is slot 5. Segment 0 comes first, the others in any order once what they wait for is there; the instructions of one
run as they are written. A send of several slots sends one message. A key that ends with ";" is a stem: a run adds the
frame of the call or loop, and the iteration. Loops and other work of deferred nodes ("call 0") stand below, further in.
A node that calls functions names them. What is learnt from the runs of a plan does not change its text.

In a draft `v3` is value 3, and an Identity shows the value of its input: they share a slot.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np

from ...graph.dtypes import dtype_name
from ...graph.library.function_library import functions_in
from .deferred import DeferredEnd
from .draft import Draft
from .instructions import Instruction, slots_read, slots_written
from .plan import DistributedLoop, Inner, LocalLoop, Plan, Segment, Stretch
from .transfers import TransferShare

_INDENT = "  "


def plan_text(plan: Plan) -> str:
    """The text of a plan."""
    return "\n".join([f"plan of {plan.device}", *_plan_lines(plan)])


def draft_text(draft: Draft, share: TransferShare) -> str:
    """The text of a draft and its segments: a line a node, with its segment if it needs an instruction."""
    lines = []
    for node, role in enumerate(draft.roles):
        outputs = ", ".join(f"v{draft.source[value]}" for value in range(draft.first[node], draft.first[node + 1]))
        inputs = ", ".join(f"v{value}" for value in draft.inputs[node])
        segment = f"    # segment {share.grouping.segment_of[node]}" if draft.emits[node] else ""
        is_what = f"{f'{outputs} = ' if outputs else ''}{role.name}({inputs})"
        lines.append(f"{node} {draft.columns.names[node]}: {is_what}{segment}")
    for number in range(1, len(share.grouping.groups)):
        messages = [f"message of {node}" for node in share.grouping.receives(number)]
        segments = [f"segment {before}" for before in share.grouping.follows(number)]
        lines.append(f"segment {number}, after {', '.join([*messages, *segments])}")
    return "\n".join(lines)


def _plan_lines(plan: Plan) -> Iterator[str]:
    yield from map(_INDENT.__add__, _begin_lines(plan))
    keys: dict[int, str] = dict(zip(plan.sends.last.tolist(), plan.sends.keys, strict=True))
    launches: dict[int, int] = {deferred.node: number for number, deferred in enumerate(plan.deferred)}
    for number, segment in enumerate(plan.segments):
        needs = ", ".join(_needs(plan, number))
        yield f"segment {number}, {f'after {needs}' if needs else 'at once'}"
        for node, instruction in instructions_of(segment):
            if node in keys:
                note = f"send {keys[node]}"
            else:
                note = f"call {launches[node]}" if node in launches else _functions(plan, node)
            yield _INDENT + _line(plan, node, instruction, note)
    for result in plan.results:
        yield f"result {result.index} ({dtype_name(result.dtype)}) = s{result.slot}"
    for number, deferred in enumerate(plan.deferred):
        outputs = _slots([*deferred.outputs, *([deferred.flag] if deferred.flag else [])])
        yield f"call {number}, {plan.names[deferred.node]}{f' -> {outputs}' if outputs else ''}"
        yield from map(_INDENT.__add__, _work_lines(plan, deferred.node, deferred.work))


def instructions_of(segment: Segment) -> Iterator[tuple[int, Instruction]]:
    """The instructions of a segment, in order, each with its node."""
    return zip(segment.origins, chain.from_iterable(segment.chunks), strict=True)


def _begin_lines(plan: Plan) -> Iterator[str]:
    """The slots that are filled other than by instructions: constants, arguments, messages."""
    yield f"slots {len(plan.template)}"
    for slot, value in enumerate(plan.template):
        if value is not None:
            yield f"holds s{slot} = {_value(value)}"
    for argument in plan.arguments:
        where = f"s{argument.slot}" if argument.slot else "nowhere"
        yield f"argument {argument.index} ({dtype_name(argument.dtype)}) -> {where}"
    for number, arrival in enumerate(plan.arrivals):
        yield f"message {number} -> {_slots(range(arrival.slot, arrival.slot + arrival.size))}, key {arrival.key}"


def _needs(plan: Plan, segment: int) -> Iterator[str]:
    """What a segment waits for."""
    yield from (f"message {n}" for n, arrival in enumerate(plan.arrivals) if segment in arrival.segments)
    yield from (f"call {n}" for n, deferred in enumerate(plan.deferred) if segment in deferred.segments)
    yield from (f"segment {n}" for n, before in enumerate(plan.segments) if segment in before.unlocks)


def _line(plan: Plan, node: int, instruction: Instruction, note: str = "") -> str:
    properties = plan.properties[node]
    written = _slots(slots_written(instruction))
    done = f"{f'{written} = ' if written else ''}{properties.op}({_slots(slots_read(instruction))})"
    return f"{done}    # {plan.names[node]}{f': {note}' if note else ''}"


def _work_lines(plan: Plan, node: int, work: object) -> Iterator[str]:
    if isinstance(work, LocalLoop):
        yield from _local_loop_lines(work)
    elif isinstance(work, DistributedLoop):
        counted = f", {_slots(work.counted)} = 0 in iteration 0, else 1" if work.counted else ""
        yield f"loop {work.frame}, together with other devices; its messages have the iteration in their keys"
        yield f"every iteration begins with {_slots(work.arguments)}{counted}"
        yield f"the next one gets {_results(work.plan, 0, work.num_variables)}"
        yield from (f"output {number}, if alive, is s{slot}" for number, slot in work.exits)
        yield from _plan_lines(work.plan)
    else:
        functions = _functions(plan, node)
        yield f"starts {plan.properties[node].op}{f', which {functions}' if functions else ''}"


def _functions(plan: Plan, node: int) -> str:
    """`calls F, G` for a node whose attrs name functions, "" for others."""
    properties = plan.properties[node]
    if isinstance(properties, DeferredEnd):
        properties = properties.deferred.node
    if properties.op_def.record.calls is None:
        return ""
    attrs = properties.attrs
    return f"calls {', '.join(name for attr in sorted(attrs) for name in functions_in(attrs.message(attr)))}"


def _results(plan: Plan, first: int, count: int) -> str:
    slot_of = {result.index: result.slot for result in plan.results}
    return _slots([slot_of[index] for index in range(first, first + count)])


def _local_loop_lines(loop: LocalLoop) -> Iterator[str]:
    counted = f", {_slots(loop.counted)} = 0 in iteration 0, else 1" if loop.counted else ""
    yield f"loop of this device, {len(loop.plan.template)} slots; begins with {_slots(loop.arguments)}{counted}"
    for slot, value in enumerate(loop.plan.template):
        if value is not None:
            yield f"{_INDENT}holds s{slot} = {_value(value)}"
    yield "every iteration"
    yield from map(_INDENT.__add__, _stretch_lines(loop, loop.condition))
    yield f"ends unless s{loop.predicate}, with {_slots(loop.exits)}; else"
    yield from map(_INDENT.__add__, _stretch_lines(loop, loop.body))
    yield f"the next one gets {_slots(loop.next_values)}"


def _stretch_lines(loop: LocalLoop, stretches: Sequence[Stretch]) -> Iterator[str]:
    for stretch in stretches:
        if isinstance(stretch, Inner):
            outputs = _slots(stretch.outputs)
            assert isinstance(stretch.work, LocalLoop)  # choices are made when a loop of functions is first called
            yield f"{f'{outputs} = ' if outputs else ''}loop({_slots(stretch.inputs)})"
            yield from map(_INDENT.__add__, _local_loop_lines(stretch.work))
        else:
            yield from (_line(loop.plan, node, instruction) for node, instruction in instructions_of(stretch))


def _slots(slots: Iterable[int]) -> str:
    return ", ".join(f"s{slot}" for slot in slots)


def _value(value: Any) -> str:  # Any: a tensor of any type
    """Type and shape of a constant, the value too if it is a scalar."""
    array = np.asarray(value)
    shape = f"[{', '.join(map(str, array.shape))}]" if array.ndim else array.item()
    return f"{array.dtype.name} {shape}"
