"""Nodes that call functions, each wrong in one way: in rank, type, number of arguments or results, or in its target.

`cases()` gives for each name the graph and what is fetched; `data/functional_answers.json` has what TensorFlow 2.21
answers to it: the code of its error, or the values.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from partita.graph.attrs import encode
from partita.graph.builder import GraphBuilder
from partita.graph.builder.handles import Tensor
from partita.graph.ops.registry import lookup_op
from partita.graph.protos import AttrValue, FunctionDef, GraphDef, NameAttrList
from tests.function_defs import LOWER, function_of

FLOAT, INT = "float32", "int32"
Case = tuple[str, GraphDef, list[str]]


def _function(name: str, arguments: Sequence[str], *results: tuple[str, dict[str, Any]] | int) -> FunctionDef:
    """A function whose results are ops on its last argument, or numbers of arguments."""
    b = GraphBuilder()
    given: list[Tensor] = [b.placeholder(f"x{k}", dtype) for k, dtype in enumerate(arguments)]
    outputs = []
    for result in results:
        if isinstance(result, int):
            outputs.append(b.identity(given[result]))
        elif result[0] in ("AddV2", "Less", "Sub"):
            outputs.append(b.op(result[0], given[-1], b.constant(result[1]["by"]))[0])
        elif result[0] == "Plus":
            outputs.append(b.op("AddV2", *given)[0])
        elif result[0] == "Const":
            outputs.append(b.constant(result[1]["value"]))
        else:
            outputs.append(b.op(result[0], given[-1], **result[1])[0])
    return function_of(name, b.graph_def(), [tensor.name for tensor in given], [tensor.name for tensor in outputs])


_ONE, _TEN = np.float32(1), np.float32(10)
_TO_INT = ("Cast", {"SrcT": FLOAT, "DstT": INT})
_LESS = ("Less", {"by": _TEN})
FUNCTIONS = [
    _function("neg", [FLOAT], ("Neg", {})),
    _function("inc", [FLOAT], ("AddV2", {"by": _ONE})),
    _function("two", [FLOAT], ("Neg", {}), ("Abs", {})),
    _function("int", [FLOAT], _TO_INT),
    _function("none", [FLOAT]),
    _function("zero", [], ("Const", {"value": np.float32(7)})),
    _function("second", [FLOAT, FLOAT], 1),
    _function("plus", [FLOAT, FLOAT], ("Plus", {})),
    _function("of_int", [INT], ("Neg", {})),
    _function("less", [FLOAT], _LESS),
    _function("less_of_two", [FLOAT, FLOAT], _LESS),
    _function("less_of_int", [INT], ("Less", {"by": np.int32(10)})),
    _function("empty", [FLOAT], ("Const", {"value": np.zeros(0, np.bool_)})),
    _function("text", [FLOAT], ("Const", {"value": np.array(b"", np.object_)})),
    _function("two_truths", [FLOAT], _LESS, _LESS),
    _function("turn", [INT, FLOAT], ("AddV2", {"by": _ONE})),
    _function("turn_two", [INT, FLOAT], ("Neg", {}), ("Abs", {})),
    _function("turn_none", [INT, FLOAT]),
    _function("turn_int", [INT, FLOAT], _TO_INT),
    _function("turn_of_ints", [INT, INT], 1),
]


def _graph(op: str, inputs: Sequence[Any], **attrs: object) -> GraphDef:  # Any: whatever makes a constant
    """One node `y`; inputs are the scalar `x`, or values of constants. `lower` asks for its lowering."""
    lower = attrs.pop("lower", False)
    b = GraphBuilder()
    b.constant(np.float32(3), name="x")
    names = ["x" if isinstance(value, str) else b.constant(value, name=f"v{k}").node for k, value in enumerate(inputs)]
    graph_def = b.graph_def()
    graph_def.library.function.extend(FUNCTIONS)
    node = graph_def.node.add(name="y", op=op, input=names)
    for name, value in attrs.items():
        node.attr[name].CopyFrom(encode(value, lookup_op(op).attrs[name].type))
    if lower:
        node.attr[LOWER].CopyFrom(AttrValue(b=True))
    return graph_def


def _named(name: str) -> NameAttrList:
    return NameAttrList(name=name)


_BAD_BODIES = ("nope", "second", "zero", "of_int", "int", "two", "none")
_PREDICATES: dict[str, Any] = {  # Any: arrays and scalars of several types
    "vector": np.array([True]),
    "false vector": np.array([False]),
    "empty": np.zeros(0, np.bool_),
    "matrix": np.ones((2, 2), np.bool_),
    "0": np.int32(0),
    "0.5": np.float32(0.5),
    "text": np.array(b"x", np.object_),
    "no text": np.array(b"", np.object_),
    "nan": np.float32("nan"),
}
_INDICES = {
    "vector": np.array([0], np.int32),
    "two": np.array([0, 1], np.int32),
    "empty": np.zeros(0, np.int32),
    "matrix": np.zeros((1, 1), np.int32),
    "-1": np.int32(-1),
    "9": np.int32(9),
}
_CALLED = {"Tin": [FLOAT], "Tout": [FLOAT]}


def _conditionals(*, lower: bool) -> Iterator[Case]:
    names = {"vector": "bool", "false vector": "bool", "empty": "bool", "matrix": "bool", "0": INT}
    for name, value in _PREDICATES.items():
        dtype = names.get(name, FLOAT if value.dtype == np.float32 else "string")
        branches = {"then_branch": _named("neg"), "else_branch": _named("inc")}
        yield f"If by {name}", _graph("If", [value, "x"], lower=lower, Tcond=dtype, **_CALLED, **branches), ["y:0"]
    for body in _BAD_BODIES:
        for taken in (True, False):
            branches = {"then_branch": _named(body), "else_branch": _named("neg")}
            graph_def = _graph("If", [np.bool_(taken), "x"], lower=lower, Tcond="bool", **_CALLED, **branches)
            yield f"If {body} {taken}", graph_def, ["y:0"]
        listed = [_named(body), _named("neg")]
        for index in (0, 1):
            graph_def = _graph("Case", [np.int32(index), "x"], lower=lower, **_CALLED, branches=listed)
            yield f"Case {body} {index}", graph_def, ["y:0"]
    for name, value in _INDICES.items():
        listed = [_named("neg"), _named("inc")]
        yield f"Case by {name}", _graph("Case", [value, "x"], lower=lower, **_CALLED, branches=listed), ["y:0"]


def _loops(*, lower: bool) -> Iterator[Case]:
    conditions = ("empty", "text", "two_truths", "none", "less_of_two", "less_of_int", "nope")
    pairs = [(condition, "inc") for condition in conditions]
    pairs += [(condition, body) for condition in ("less", "empty") for body in _BAD_BODIES]
    for condition, body in pairs:
        functions = {"cond": _named(condition), "body": _named(body)}
        yield f"While {condition} {body}", _graph("While", ["x"], lower=lower, T=[FLOAT], **functions), ["y:0"]
    for number in (0, -1):
        functions = {"cond": _named("less"), "body": _named("inc")}
        attrs = {"T": [FLOAT], "parallel_iterations": number, **functions}
        yield f"While of {number}", _graph("While", ["x"], lower=lower, **attrs), ["y:0"]


_BOUNDS = [
    *[(0, 5, 1), (5, 0, -2), (0, 5, 2), (3, 3, 1), (3, 3, 0), (3, 3, -1), (-3, 2, 2), (2147483640, 2147483647, 7)],
    *[(0, 5, 0), (5, 0, 0), (0, 5, -1), (5, 0, 1), ([0], 5, 1), (0, [5], 1), (0, 5, [1]), (0, [], 1)],
]


def _counted(*, lower: bool) -> Iterator[Case]:
    for bounds in _BOUNDS:
        inputs = [*(np.array(bound, np.int32) for bound in bounds), "x"]
        yield f"For {bounds}", _graph("For", inputs, lower=lower, T=[FLOAT], body=_named("turn")), ["y:0"]
    for body in ("nope", "inc", "turn_two", "turn_none", "turn_int", "second", "turn_of_ints"):
        for turns in (0, 1, 5):
            inputs = [np.int32(0), np.int32(turns), np.int32(1), "x"]
            graph_def = _graph("For", inputs, lower=lower, T=[FLOAT], body=_named(body))
            yield f"For {body} x{turns}", graph_def, ["y:0"]


def _calls() -> Iterator[Case]:
    targets = [b"/device:CPU:0", b"CPU:0", b"", b"/device:CPU:9", b"/device:GPU:0", b"/job:other/task:0", b"cpuu:x:y"]
    for target in [*targets, [b"/device:CPU:0"]]:
        inputs = [np.array(target, np.object_), "x"]
        yield f"RemoteCall {target!r}", _graph("RemoteCall", inputs, **_CALLED, f=_named("neg")), ["y:0"]
    for op in ("PartitionedCall", "StatefulPartitionedCall", "RemoteCall", "SymbolicGradient"):
        before = [np.array(b"/device:CPU:0", np.object_)] if op == "RemoteCall" else []
        after = ["x"] if op == "SymbolicGradient" else []
        types = [FLOAT] * (1 + len(after))
        for body in ("nope", "Neg", "of_int", "int", "none"):
            attrs = {"Tin": types, "Tout": [FLOAT], "f": _named(body)}
            yield f"{op} {body}", _graph(op, [*before, "x", *after], **attrs), ["y:0"]
        for results in ([INT], [FLOAT, FLOAT]):
            attrs = {"Tin": types, "Tout": results, "f": _named("neg")}
            yield f"{op} {results}", _graph(op, [*before, "x", *after], **attrs), [f"y:{len(results) - 1}"]
        attrs = {"Tin": [FLOAT, *types], "Tout": [FLOAT], "f": _named("neg")}
        yield f"{op} of two", _graph(op, [*before, "x", "x", *after], **attrs), ["y:0"]


def _maps() -> Iterator[Case]:
    rows = np.ones((2, 3), np.float32)
    for body in ("neg", *_BAD_BODIES):
        attrs = {"Targuments": [FLOAT], "Tcaptured": [], "output_types": [FLOAT], "output_shapes": [None]}
        yield f"MapDefun {body}", _graph("MapDefun", [rows], **attrs, f=_named(body)), ["y:0"]
    attrs = {"Targuments": [FLOAT], "Tcaptured": [INT], "output_types": [FLOAT], "output_shapes": [None]}
    yield "MapDefun captured", _graph("MapDefun", [rows, np.int32(1)], **attrs, f=_named("second")), ["y:0"]
    for surplus, types in ((rows, [FLOAT, FLOAT]), (np.ones(2, np.int32), [FLOAT, INT])):
        attrs |= {"Targuments": types, "Tcaptured": []}
        name = f"MapDefun surplus {surplus.dtype}{surplus.shape}"
        yield name, _graph("MapDefun", [rows, surplus], **attrs, f=_named("neg")), ["y:0"]
    attrs |= {"Targuments": [FLOAT], "Tcaptured": [INT]}
    yield "MapDefun surplus captured", _graph("MapDefun", [rows, np.int32(1)], **attrs, f=_named("neg")), ["y:0"]
    attrs |= {"Tcaptured": [], "output_shapes": [(5,)]}
    yield "MapDefun of other shape", _graph("MapDefun", [rows], **attrs, f=_named("neg")), ["y:0"]
    for size in (None, 3):
        attrs["output_shapes"] = [None if size is None else (size,)]
        yield f"MapDefun of nothing {size}", _graph("MapDefun", [rows[:0]], **attrs, f=_named("neg")), ["y:0"]


def _xla() -> Iterator[Case]:
    conditions = ("two_truths", "none", "less_of_two", "less_of_int", "text", "nope")
    pairs = [*[(condition, "inc") for condition in conditions], *[("less", body) for body in ("nope", "int", "second")]]
    for condition, body in [("less", "inc"), *pairs]:
        functions = {"cond": _named(condition), "body": _named(body)}
        yield f"XlaWhile {condition} {body}", _graph("XlaWhile", ["x"], T=[FLOAT], **functions), ["y:0"]

    for reducer in ("plus", *_BAD_BODIES):
        attrs = {"T": FLOAT, "dimensions_to_reduce": [0], "reducer": _named(reducer)}
        graph_def = _graph("XlaReduce", [np.ones((2, 3), np.float32), np.float32(0)], **attrs)
        yield f"XlaReduce {reducer}", graph_def, ["y:0"]

    bodies = _BAD_BODIES[:-2]  # with other numbers of results TensorFlow dies
    for body, count in (("neg", 1), ("neg", 2), ("second", 2), *[(body, 1) for body in bodies]):
        for constants in (0, count):
            launched = {"Tconstants": [FLOAT] * constants, "Targs": [FLOAT] * (count - constants), "Nresources": 0}
            graph_def = _graph("XlaLaunch", ["x"] * count, **launched, Tresults=[FLOAT], function=_named(body))
            yield f"XlaLaunch {body} of {count}, {constants} constant", graph_def, ["y:0"]


def _internal() -> Iterator[Case]:
    """Ops that TensorFlow's own passes make, with fewer attrs."""
    branches = {"then_branch": _named("neg"), "else_branch": _named("inc")}
    for name, value in {"true": np.bool_(True), "0": np.int32(0), "vector": np.array([False])}.items():
        dtype = INT if name == "0" else "bool"
        yield f"_If by {name}", _graph("_If", [value, "x"], Tcond=dtype, **_CALLED, **branches), ["y:0"]
    for body in _BAD_BODIES:
        branches["then_branch"] = _named(body)
        yield f"_If {body}", _graph("_If", [np.bool_(True), "x"], Tcond="bool", **_CALLED, **branches), ["y:0"]
    pairs = [("less", body) for body in ("inc", "nope", "second", "of_int", "int", "two")]
    for condition, body in [*pairs, ("empty", "inc"), ("two_truths", "inc"), ("less_of_int", "inc"), ("nope", "inc")]:
        functions = {"cond": _named(condition), "body": _named(body)}
        yield f"_While {condition} {body}", _graph("_While", ["x"], T=[FLOAT], **functions), ["y:0"]


def _batches() -> Iterator[Case]:
    rows = np.ones((2, 3), np.float32)
    attrs: dict[str, Any] = {"num_batch_threads": 1, "max_batch_size": 4, "batch_timeout_micros": 0}
    attrs |= {
        "batching_queue": "q",
        "container": "",
        "shared_name": "",
        "Tin": [FLOAT],
        "Tcaptured": [],
        "Tout": [FLOAT],
    }
    for body in ("neg", *_BAD_BODIES):
        yield f"BatchFunction {body}", _graph("BatchFunction", [rows], **attrs, f=_named(body)), ["y:0"]
    wrong: Sequence[tuple[str, list[Any], dict[str, Any]]] = (
        ("of a scalar", ["x"], {}),
        ("of no rows", [rows[:0]], {}),
        ("of too many rows", [np.ones((5, 1), np.float32)], {}),
        ("of unequal rows", [rows, rows[:1]], {"Tin": [FLOAT, FLOAT], "f": _named("second")}),
        ("captured", [rows, rows], {"Tcaptured": [FLOAT], "f": _named("second")}),
        ("captured int", [rows, np.int32(1)], {"Tcaptured": [INT], "f": _named("second")}),
        ("of two results", [rows], {"Tout": [FLOAT, FLOAT]}),
        ("of an int", [rows], {"Tout": [INT]}),
        ("sizes too small", [rows], {"allowed_batch_sizes": [2]}),
        ("sizes unsorted", [rows], {"allowed_batch_sizes": [4, 2]}),
    )
    for name, inputs, changed in wrong:
        graph_def = _graph("BatchFunction", inputs, **(attrs | {"f": _named("neg")} | changed))
        yield f"BatchFunction {name}", graph_def, [f"y:{len(changed.get('Tout', [0])) - 1}"]


def cases() -> Iterator[Case]:
    """Name, graph and fetches."""
    for lower in (False, True):
        for name, graph_def, fetches in (
            *_conditionals(lower=lower),
            *_loops(lower=lower),
            *_counted(lower=lower),
        ):
            yield name + (", lowered" if lower else ""), graph_def, fetches
    yield from _calls()
    yield from _maps()
    yield from _xla()
    yield from _batches()
    yield from _internal()
