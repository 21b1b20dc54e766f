"""Graphs in which a function gives the handle of a variable, queue or table that is used outside, on another device.

`questions()` gives a sample of all that can be made of `Parts`; `data/handle_answers.json` has what TensorFlow 2.21
answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from itertools import product
from random import Random
from typing import Any

import numpy as np

from partita.graph.builder import GraphBuilder
from partita.graph.builder.handles import Operation, Tensor
from partita.graph.protos import AttrValue, ConfigProto, FunctionDef, NameAttrList
from tests.function_defs import LOWER, function_of
from tests.questions import Question, Step, write_questions

CPUS, COUNT = 3, 240
ZERO, ONE, TWO = (f"/device:CPU:{k}" for k in range(CPUS))


@dataclass(frozen=True)
class Parts:
    """What a graph is made of.

    `made` says where the resource is made: in the function, or outside, so that its handle is passed through.
    `way` is the op that calls; `depth` 2 puts a call in the called function. With `callers` 2 another node calls it
    too, from another device. `home`, `call`, `inner` and `reader` are the requested devices of the resource, the call,
    the nested call, and of what uses the handle outside.
    """

    kind: str
    made: str
    way: str
    depth: int
    callers: int
    home: str
    call: str
    inner: str
    reader: str
    inlined: bool
    soft: bool

    @property
    def name(self) -> str:
        """All parts in words."""
        texts = [str(getattr(self, field.name)).removeprefix("/device:") or "-" for field in fields(self)]
        return " ".join(texts)


CHOICES: dict[str, Sequence[Any]] = {  # Any: the types of the fields
    "kind": ("variable", "queue", "table"),
    "made": ("inside", "outside"),
    "way": ("PartitionedCall", "StatefulPartitionedCall", "own", "If", "If lowered", "Case", "While", "While lowered"),
    "depth": (1, 2),
    "callers": (1, 2),
    "home": ("", ZERO, ONE),
    "call": ("", ZERO, TWO),
    "inner": ("", TWO),
    "reader": ("", ONE, TWO),
    "inlined": (False, True),
    "soft": (False, True),
}


def _make(b: GraphBuilder, kind: str, device: str) -> Tensor:
    named: dict[str, Any] = {"shared_name": b"r", "device": device}
    if kind == "variable":
        return b.op("VarHandleOp", dtype="float32", shape=(), **named)[0]
    if kind == "queue":
        return b.op("FIFOQueueV2", component_types=["float32"], shapes=[()], **named)[0]
    return b.op("MutableHashTableV2", key_dtype="int64", value_dtype="float32", **named)[0]


def _fill(b: GraphBuilder, kind: str, handle: Tensor, value: float, device: str = "") -> Operation:
    if kind == "variable":
        return b.op("AssignVariableOp", handle, b.constant(np.float32(value)), dtype="float32", device=device)
    if kind == "queue":
        return b.op("QueueEnqueueV2", handle, [b.constant(np.float32(value))], device=device)
    return b.op("LookupTableInsertV2", handle, b.constant(np.int64(1)), b.constant(np.float32(value)), device=device)


def _read(b: GraphBuilder, kind: str, handle: Tensor, device: str, name: str) -> Operation:
    if kind == "variable":
        return b.op("ReadVariableOp", handle, dtype="float32", device=device, name=name)
    if kind == "queue":
        return b.op("QueueDequeueV2", handle, component_types=["float32"], device=device, name=name)
    keys, default = b.constant(np.int64(1)), b.constant(np.float32(-1))
    return b.op("LookupTableFindV2", handle, keys, default, device=device, name=name)


def _call(b: GraphBuilder, way: str, name: str, inputs: Sequence[Tensor], device: str) -> Tensor:
    """The handle that a call of a function gives."""
    op, _, lower = way.partition(" ")
    types: dict[str, Any] = {"Tin": ["resource"] * len(inputs), "Tout": ["resource"]}
    if lower:
        types[LOWER] = AttrValue(b=True)
    function = NameAttrList(name=name)
    if op == "own":
        return b.op(name, *inputs, device=device)[0]
    if op == "If":
        attrs = types | {"then_branch": function, "else_branch": function}
        return b.op("If", b.constant(np.bool_(True)), list(inputs), device=device, attrs=attrs)[0]
    if op == "Case":
        return b.op(
            "Case", b.constant(np.int32(0)), list(inputs), device=device, attrs=types | {"branches": [function]}
        )[0]
    if op == "While":
        attrs = {"T": ["int32", "resource"], "cond": NameAttrList(name="once"), "body": function}
        if lower:
            attrs[LOWER] = AttrValue(b=True)
        return b.op("While", [b.constant(np.int32(0)), *inputs], device=device, attrs=attrs)[1]
    return b.op(op, list(inputs), device=device, attrs=types | {"f": function})[0]


def _functions(parts: Parts) -> list[FunctionDef]:
    """The functions that are called, the innermost first, and the condition of a loop."""
    turns = parts.way.startswith("While")
    functions: list[FunctionDef] = [_once()] if turns else []
    for level in reversed(range(parts.depth)):
        b = GraphBuilder()
        for function in functions:
            b.function(function)
        count = [b.placeholder("i", "int32", ())] if turns else []
        given = [b.placeholder("h", "resource", ())] if parts.made == "outside" or turns else []
        control: list[Operation] = []
        if level + 1 < parts.depth:
            handle = _call(b, parts.way, f"f{level + 1}", given, parts.inner)
            control = [b.op("NoOp", control=[handle])]
        elif parts.made == "inside":
            made = _make(b, parts.kind, parts.home)
            control = [_fill(b, parts.kind, made, 7.0)]
            handle = b.op("Identity", made, control=control)[0]
        else:
            handle = b.identity(given[0])
        results = [b.op("AddV2", i, b.constant(np.int32(1)))[0] for i in count] + [handle]
        arguments = [tensor.name for tensor in (*count, *given)]
        names = [tensor.name for tensor in results]
        functions.append(function_of(f"f{level}", b.graph_def(), arguments, names, [node.name for node in control]))
        functions[-1].signature.is_stateful = True
    return functions


def _once() -> FunctionDef:
    b = GraphBuilder()
    count, _ = b.placeholder("i", "int32", ()), b.placeholder("h", "resource", ())
    less = b.op("Less", count, b.constant(np.int32(1)))
    return function_of("once", b.graph_def(), ["i:0", "h:0"], [less[0].name])


def question(parts: Parts) -> Question:
    """Fills the resource, calls the function and reads what it gives."""
    b = GraphBuilder()
    for function in _functions(parts):
        b.function(function)
    needs_handle = parts.made == "outside" or parts.way.startswith("While")
    outside = [_make(b, parts.kind, parts.home)] if needs_handle else []
    steps: list[Step] = []
    if outside:
        filled = [_fill(b, parts.kind, outside[0], 5.0) for _ in range(parts.callers)]
        steps.append(([], [node.name for node in filled]))
    fetches = []
    for caller in range(parts.callers):
        device, reader = (parts.call, parts.reader) if not caller else (ONE, ZERO)
        handle = _call(b, parts.way, "f0", outside, device)
        fetches.append(_read(b, parts.kind, handle, reader, f"read{caller}")[0].name)
    config = ConfigProto(allow_soft_placement=parts.soft)
    config.graph_options.optimizer_options.do_function_inlining = parts.inlined
    return Question(parts.name, b.graph_def(), [*steps, (fetches, [])], CPUS, config)


def questions() -> list[Question]:
    """A sample of all graphs."""
    every = [Parts(*values) for values in product(*CHOICES.values())]
    different = [parts for parts in every if parts.depth > 1 or not parts.inner]
    return [question(parts) for parts in Random(0).sample(different, COUNT)]


if __name__ == "__main__":
    write_questions(questions())
