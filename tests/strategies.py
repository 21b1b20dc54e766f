"""Generators for property tests: random graphs with placements, feeds and fetches; names, tensors and attr values.

In a `GraphCase` the graph is valid and acyclic, every placeholder is fed, every fetch is alive, and all values stay
finite: each tensor has a bound on its magnitude, and an op that would exceed the limit is not drawn. No op is random at
run time, so any two runs must agree bit for bit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import ml_dtypes
import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from partita.graph.attrs import encode
from partita.graph.dtypes import Array, DataType
from partita.graph.ops.registry import lookup_op
from partita.graph.protos import AttrValue, GraphDef, TensorProto
from partita.graph.tensor import numpy_to_tensor

BOUND = 1e6
SIZES = (1, 2, 3)


def cpu(index: int) -> str:
    """Full name of a CPU of the local task."""
    return f"/job:localhost/replica:0/task:0/device:CPU:{index}"


@dataclass(frozen=True)
class Tensor:
    """One float32 matrix of a graph being drawn: where it comes from, its shape, and a bound on its elements."""

    name: str
    shape: tuple[int, int]
    bound: float


@dataclass(frozen=True)
class GraphCase:
    """A request on a random graph without devices; `tensors` can be fetched or fed, `shapes` are their shapes."""

    graph_def: GraphDef
    feeds: Mapping[str, Array]
    fetches: tuple[str, ...]
    targets: tuple[str, ...]
    shapes: Mapping[str, tuple[int, int]]

    @property
    def nodes(self) -> list[str]:
        """Names of all nodes."""
        return [node.name for node in self.graph_def.node]

    def on(self, placement: Mapping[str, str]) -> GraphDef:
        """The graph with the device of every node filled in."""
        placed = GraphDef.FromString(self.graph_def.SerializeToString())
        for node in placed.node:
            node.device = placement[node.name]
        return placed

    def on_one_device(self) -> GraphDef:
        """The graph with every node on the first CPU."""
        return self.on(dict.fromkeys(self.nodes, cpu(0)))


@dataclass
class _Writer:
    """A graph in the making; `live` are the tensors that later nodes may use."""

    draw: st.DrawFn
    graph_def: GraphDef = field(default_factory=GraphDef)
    live: list[Tensor] = field(default_factory=list)
    anchors: list[str] = field(default_factory=list)  # nodes that a control edge may start from: never dead
    feeds: dict[str, Array] = field(default_factory=dict)

    def add(self, op: str, inputs: list[str], **attrs: Any) -> str:  # Any: whatever the attr's type takes
        """Adds a node, now and then with control inputs, and returns its name."""
        name = f"{self.draw(st.sampled_from(('', 'a/', 'a/b/', 'c.d-e/')))}n{len(self.graph_def.node)}"
        node = self.graph_def.node.add(name=name, op=op, input=inputs)
        for key, value in attrs.items():
            node.attr[key].CopyFrom(encode(value, lookup_op(op).attrs[key].type))
        if self.anchors and op != "Const" and self.draw(st.integers(0, 4)) == 0:
            control = self.draw(st.lists(st.sampled_from(self.anchors), min_size=1, max_size=3, unique=True))
            node.input.extend(f"^{anchor}" for anchor in control)
        return name

    def constant(self, value: Array) -> str:
        """Adds a Const."""
        return self.add("Const", [], dtype=_type_of(value), value=numpy_to_tensor(value))

    def index(self, *values: int) -> str:
        """Adds an int32 Const: a scalar for one value, a vector for several."""
        return self.constant(np.array(values[0] if len(values) == 1 else values, np.int32))

    def pick(self) -> Tensor:
        """A tensor to use."""
        return self.draw(st.sampled_from(self.live))

    def keep(self, name: str, shape: tuple[int, int], bound: float, *, outputs: int = 1) -> None:
        """Makes the outputs of a live node available to later nodes."""
        self.anchors.append(name)
        self.live += [Tensor(f"{name}:{port}", shape, bound) for port in range(outputs)]


def _type_of(value: Array) -> DataType:
    return {"f": DataType.FLOAT, "i": DataType.INT32, "b": DataType.BOOL}[value.dtype.kind]


def matrices(shape: tuple[int, ...]) -> st.SearchStrategy[Array]:
    """Float32 arrays of a shape with a few simple values, exact in binary."""
    return hnp.arrays(np.float32, shape, elements=st.sampled_from((-2.0, -1.0, -0.5, 0.0, 0.25, 1.0, 3.0)))


def _source(writer: _Writer) -> None:
    shape = (writer.draw(st.sampled_from(SIZES)), writer.draw(st.sampled_from(SIZES)))
    value = writer.draw(matrices(shape))
    if writer.draw(st.booleans()):
        name = writer.add("Placeholder", [], dtype=DataType.FLOAT, shape=shape)
        writer.feeds[f"{name}:0"] = value
        writer.keep(name, shape, 3.0)
    else:
        writer.keep(writer.constant(value), shape, 3.0)


def _unary(writer: _Writer, tensor: Tensor | None = None) -> tuple[str, Tensor]:
    x = writer.pick() if tensor is None else tensor
    op, bound = writer.draw(
        st.sampled_from((("Neg", x.bound), ("Abs", x.bound), ("Relu", x.bound), ("Tanh", 1.0), ("Identity", x.bound)))
    )
    name = writer.add(op, [x.name], T=DataType.FLOAT)
    return name, Tensor(f"{name}:0", x.shape, bound)


def _elementwise(writer: _Writer) -> None:
    name, tensor = _unary(writer)
    writer.keep(name, tensor.shape, tensor.bound)


def _binary(writer: _Writer) -> None:
    x = writer.pick()
    y = writer.draw(st.sampled_from([other for other in writer.live if other.shape in (x.shape, (1, 1))] or [x]))
    bounds = {"AddV2": x.bound + y.bound, "Sub": x.bound + y.bound, "Mul": x.bound * y.bound}
    bounds |= {"Maximum": x.bound + y.bound, "Minimum": x.bound + y.bound}
    op = writer.draw(st.sampled_from(sorted(name for name, bound in bounds.items() if bound < BOUND) or ["Sub"]))
    if bounds[op] < BOUND:
        writer.keep(writer.add(op, [x.name, y.name], T=DataType.FLOAT), x.shape, bounds[op])


def _matmul(writer: _Writer) -> None:
    x = writer.pick()
    matching = [other for other in writer.live if other.shape[0] == x.shape[1]]
    y, transposed = (writer.draw(st.sampled_from(matching)), False) if matching else (x, True)
    bound = x.bound * y.bound * x.shape[1]
    if bound < BOUND:
        name = writer.add("MatMul", [x.name, y.name], T=DataType.FLOAT, transpose_b=transposed)
        writer.keep(name, (x.shape[0], y.shape[0] if transposed else y.shape[1]), bound)


def _concat(writer: _Writer) -> None:
    x, axis = writer.pick(), writer.draw(st.integers(0, 1))
    others = [other for other in writer.live if other.shape[1 - axis] == x.shape[1 - axis]]
    y = writer.draw(st.sampled_from(others))
    if x.shape[axis] + y.shape[axis] <= 2 * max(SIZES):
        name = writer.add("ConcatV2", [x.name, y.name, writer.index(axis)], T=DataType.FLOAT, N=2, Tidx=DataType.INT32)
        size = x.shape[axis] + y.shape[axis]
        writer.keep(name, (size, x.shape[1]) if axis == 0 else (x.shape[0], size), max(x.bound, y.bound))


def _split(writer: _Writer) -> None:
    x, axis = writer.pick(), writer.draw(st.integers(0, 1))
    pieces = writer.draw(st.sampled_from([count for count in (1, 2, 3) if x.shape[axis] % count == 0]))
    name = writer.add("Split", [writer.index(axis), x.name], T=DataType.FLOAT, num_split=pieces)
    size = x.shape[axis] // pieces
    writer.keep(name, (size, x.shape[1]) if axis == 0 else (x.shape[0], size), x.bound, outputs=pieces)


def _reshape(writer: _Writer) -> None:
    x = writer.pick()
    shape = writer.draw(st.sampled_from((x.shape, x.shape[::-1], (1, x.shape[0] * x.shape[1]))))
    name = writer.add("Reshape", [x.name, writer.index(*shape)], T=DataType.FLOAT, Tshape=DataType.INT32)
    writer.keep(name, (shape[0], shape[1]), x.bound)


def _reduction(writer: _Writer) -> None:
    x, axis = writer.pick(), writer.draw(st.integers(0, 1))
    op = writer.draw(st.sampled_from(("Sum", "Max", "Mean")))
    inputs, types = [x.name, writer.index(axis)], {"T": DataType.FLOAT, "Tidx": DataType.INT32}
    name = writer.add(op, inputs, keep_dims=True, **types)
    writer.keep(name, (1, x.shape[1]) if axis == 0 else (x.shape[0], 1), x.bound * x.shape[axis])


def _identity_n(writer: _Writer) -> None:
    x, y = writer.pick(), writer.pick()
    name = writer.add("IdentityN", [x.name, y.name], T=[DataType.FLOAT, DataType.FLOAT])
    writer.anchors.append(name)
    writer.live += [replace(x, name=f"{name}:0"), replace(y, name=f"{name}:1")]


def _diamond(writer: _Writer) -> None:
    """A conditional: each side has ops on its Switch output, of which one is alive; the Merge is alive."""
    x = writer.pick()
    pred = writer.add("Placeholder", [], dtype=DataType.BOOL, shape=())
    writer.feeds[f"{pred}:0"] = np.array(writer.draw(st.booleans()))
    switch = writer.add("Switch", [x.name, f"{pred}:0"], T=DataType.FLOAT)
    sides = []
    for port in (0, 1):
        side = Tensor(f"{switch}:{port}", x.shape, x.bound)
        for _ in range(writer.draw(st.integers(1, 3))):
            _, side = _unary(writer, side)
        sides.append(side)
    merge = writer.add("Merge", [side.name for side in sides], T=DataType.FLOAT, N=2)
    writer.keep(merge, x.shape, max(side.bound for side in sides))


def _no_op(writer: _Writer) -> None:
    writer.anchors.append(writer.add("NoOp", []))


_STEPS = (_elementwise, _binary, _matmul, _concat, _split, _reshape, _reduction, _identity_n, _diamond, _no_op, _source)


@st.composite
def graph_cases(draw: st.DrawFn, max_steps: int = 10) -> GraphCase:
    """Requests on random graphs: feeds of placeholders and of internal tensors, distinct fetches, targets."""
    writer = _Writer(draw)
    _source(writer)
    for step in draw(st.lists(st.sampled_from(_STEPS), min_size=1, max_size=max_steps)):
        step(writer)
    shapes = {tensor.name: tensor.shape for tensor in writer.live}
    feeds = dict(writer.feeds)
    internal = st.lists(st.sampled_from(sorted(shapes)), max_size=1)
    feeds |= {name: draw(matrices(shapes[name])) for name in draw(internal)}
    fetchable = sorted(name for name in shapes if name not in feeds)
    fetches = draw(st.lists(st.sampled_from(fetchable), max_size=4, unique=True)) if fetchable else []
    targets = draw(st.lists(st.sampled_from(writer.anchors), min_size=0 if fetches else 1, max_size=2, unique=True))
    fed = {name.partition(":")[0] for name in writer.feeds}
    targets = [name for name in targets if name not in fed]  # a target that is a placeholder would run without its feed
    if not fetches and not targets:
        targets = [writer.add("NoOp", [])]
    return GraphCase(writer.graph_def, feeds, tuple(fetches), tuple(targets), shapes)


@st.composite
def placements(draw: st.DrawFn, case: GraphCase, max_devices: int = 4) -> dict[str, str]:
    """A device for every node of a case, among one to `max_devices` CPUs."""
    count = draw(st.integers(1, max_devices))
    return {name: cpu(draw(st.integers(0, count - 1))) for name in case.nodes}


@st.composite
def placed_cases(draw: st.DrawFn, max_steps: int = 10) -> tuple[GraphCase, dict[str, str]]:
    """A request together with a placement of its graph."""
    case = draw(graph_cases(max_steps))
    return case, draw(placements(case))


def job_names() -> st.SearchStrategy[str]:
    """Names that a job may have."""
    return st.from_regex(r"[a-z][a-z0-9_]{0,8}", fullmatch=True)


@st.composite
def full_device_names(draw: st.DrawFn) -> str:
    """Complete device names: job, replica, task, type and number."""
    numbers = st.integers(0, 99)
    kind = draw(st.sampled_from(("CPU", "GPU", "TPU")))
    task = f"/job:{draw(job_names())}/replica:{draw(numbers)}/task:{draw(numbers)}"
    return f"{task}/device:{kind}:{draw(numbers)}"


@st.composite
def partial_device_names(draw: st.DrawFn) -> str:
    """Device names with any part left out, the empty one too; a part may be the wildcard."""
    number = st.one_of(st.just("*"), st.integers(0, 99).map(str))
    parts = [("job", job_names()), ("replica", number), ("task", number)]
    text = "".join(f"/{key}:{draw(value)}" for key, value in parts if draw(st.booleans()))
    return text + draw(st.sampled_from(("", "/device:CPU:*", "/device:GPU:1", "/device:TPU:0")))


_NUMBERS = (np.float16, np.float32, np.float64, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32)
_MORE_NUMBERS = (np.uint64, np.bool_, np.complex64, np.complex128)


@st.composite
def tensors(draw: st.DrawFn) -> Array:
    """Arrays of every element type that a file can hold, NaN and empty ones too; strings as objects of bytes."""
    shape = draw(hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3))
    kind = draw(st.sampled_from((*_NUMBERS, *_MORE_NUMBERS, ml_dtypes.bfloat16, object)))
    if kind is object:
        array = np.empty(int(np.prod(shape)), object)
        array[:] = [draw(st.binary(max_size=5)) for _ in range(array.size)]
        return array.reshape(shape)
    if kind is ml_dtypes.bfloat16:
        return draw(hnp.arrays(np.uint16, shape)).view(ml_dtypes.bfloat16)
    return draw(hnp.arrays(kind, shape))


_TYPED_FIELDS = {"f4": "float_val", "f8": "double_val", "i4": "int_val", "i8": "int64_val", "b1": "bool_val"}


@st.composite
def tensor_protos(draw: st.DrawFn) -> tuple[TensorProto, Array]:
    """A TensorProto in any encoding, with its array; trailing repeats may be left out, as in files."""
    array = draw(tensors())
    proto = numpy_to_tensor(array)
    typed = _TYPED_FIELDS.get(array.dtype.str[1:])
    if typed is not None and draw(st.booleans()):
        proto.ClearField("tensor_content")
        values = array.reshape(-1).tolist()
        while len(values) > 1 and repr(values[-1]) == repr(values[-2]) and draw(st.booleans()):
            values.pop()
        getattr(proto, typed).extend(values)
    return proto, array


def attr_values() -> st.SearchStrategy[tuple[AttrValue, str]]:
    """An AttrValue with the type string an op would declare it with."""
    shapes = st.one_of(st.none(), st.lists(st.one_of(st.none(), st.integers(0, 9)), max_size=3).map(tuple))
    plain: dict[str, st.SearchStrategy[Any]] = {  # Any: one strategy per attr type
        "string": st.binary(max_size=8),
        "int": st.integers(-(2**63), 2**63 - 1),
        "float": st.floats(width=32, allow_nan=False),
        "bool": st.booleans(),
        "type": st.sampled_from((DataType.FLOAT, DataType.INT32, DataType.STRING, DataType.FLOAT_REF)),
        "shape": shapes,
        "tensor": tensors(),
    }
    single = [_encoded(kind, value) for kind, value in plain.items()]
    many = [_encoded(f"list({kind})", st.lists(value, max_size=3)) for kind, value in plain.items()]
    return st.one_of(*single, *many)


def _encoded(kind: str, values: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[AttrValue, str]]:  # Any: by kind
    return values.map(lambda value: (encode(value, kind), kind))
