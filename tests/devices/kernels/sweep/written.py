"""Writes calls of kernels that no test of kernels makes in a way that could be recorded, and adds them to the others.

    python -m tests.devices.kernels.sweep.written

A call is a line of `CALLS`: the op, its inputs and its attrs. An input is a value, which the sweep will change, or what
makes it: a variable, a dataset, a node before the call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from partita.graph import NameAttrList
from partita.graph.builder import GraphBuilder
from partita.graph.builder.handles import Operation, Tensor
from partita.graph.ops.registry import lookup_op
from partita.graph.protos import FunctionDef
from tests.devices.kernels.sweep.cases import FILE, INPUT, TARGET, read_graphs, write_graphs
from tests.devices.kernels.sweep.sweeping import load
from tests.function_defs import function_of

F, N, L = np.float32, np.int32, np.int64
VERSION = 2474
Attrs = dict[str, Any]  # values of attrs of all types
Made = Callable[["_Writer"], Any]  # one tensor or several
Call = tuple[str, Sequence[Any], Attrs]


class _Writer:
    """A graph that is being written; the target runs after all nodes that `before` names."""

    def __init__(self) -> None:
        self.b = GraphBuilder()
        self.before: list[Operation] = []

    def write(self, op: str, inputs: Sequence[Any], attrs: Attrs) -> bytes:
        """The serialised graph of a call."""
        given = [self._input(k, value) for k, value in enumerate(inputs)]
        with self.b.control_dependencies(*self.before):
            self.b.op(op, *given, name=TARGET, attrs=attrs)
        graph = self.b.graph_def()
        removed = lookup_op(op).deprecation
        graph.versions.producer = VERSION if removed is None else removed[0] - 1
        graph.library.function.extend(FUNCTIONS)
        return graph.SerializeToString(deterministic=True)

    def _input(self, number: int, value: Any) -> Any:
        if callable(value):
            return value(self)
        if isinstance(value, list):
            return [self._input(number + k, item) for k, item in enumerate(value)]
        return self.b.constant(value, name=f"{INPUT}{number}")


def made(op: str, *inputs: Any, **attrs: Any) -> Made:
    """The output of a node before the call."""

    def make(w: _Writer) -> Tensor:
        given = [value(w) if callable(value) else w.b.constant(value) for value in inputs]
        return w.b.op(op, *given, **attrs)[0]

    return make


def variable(value: Any) -> Made:
    """A variable with a handle, which has that value."""

    def make(w: _Writer) -> Tensor:
        array = np.asarray(value)
        name = f"variable_{len(w.before)}"
        handle = w.b.op("VarHandleOp", dtype=array.dtype.name, shape=array.shape, shared_name=name)[0]
        w.before.append(w.b.op("AssignVariableOp", handle, w.b.constant(array)))
        return handle

    return make


def reference(value: Any) -> Made:
    """A variable of the first version, which has that value."""

    def make(w: _Writer) -> Tensor:
        array = np.asarray(value)
        variable = w.b.op("VariableV2", dtype=array.dtype.name, shape=array.shape)[0]
        w.before.append(w.b.op("Assign", variable, w.b.constant(array)))
        return variable

    return make


def _function(name: str, compute: Callable[[GraphBuilder, list[Tensor]], list[Tensor]], count: int = 1) -> FunctionDef:
    b = GraphBuilder()
    given = [b.placeholder(f"x{k}", "int64") for k in range(count)]
    results = compute(b, given)
    return function_of(name, b.graph_def(), [t.name for t in given], [t.name for t in results])


RANGE = made("RangeDataset", L(0), L(4), L(1), output_types=["int64"], output_shapes=[()])
PAIRS = made(
    "BatchDataset", RANGE, L(2), output_types=["int64"], output_shapes=[(None,)]
)  # the elements of whose elements are counted
FUNCTIONS = [
    _function("twice", lambda b, x: [b.op("AddV2", x[0], x[0])[0]]),
    _function("is_large", lambda b, x: [b.op("Less", b.constant(L(1)), x[0])[0]]),
    _function("total", lambda b, x: [b.op("AddV2", *x)[0]] * 2, 2),
    _function(
        "counted",
        lambda b, x: [b.op("RangeDataset", L(0), x[0], L(1), output_types=["int64"], output_shapes=[()])[0]],
    ),
]
INTS = {"output_types": ["int64"], "output_shapes": [()]}
CALLED = INTS | {"Targuments": []}
TWICE = CALLED | {"f": NameAttrList(name="twice")}
COUNTED = CALLED | {"f": NameAttrList(name="counted")}
SEEDS = (L(1), L(2))
SEED_GENERATOR = made("AnonymousSeedGenerator", *SEEDS, np.bool_(True))
RNG = variable(np.array([1, 2, 3], L))  # the state of a generator of Philox numbers
SHAPE = np.array([2, 3], N)
IMAGE = (np.arange(12, dtype=F) / 12).reshape(1, 2, 2, 3)
ROWS, ONES = np.arange(6, dtype=F).reshape(3, 2) + 1, np.ones((3, 2), F)
STEP, FEW, PLACES = F(0.5), np.array([[1, 2], [3, 4]], F), np.array([0, 2], N)


def _datasets() -> Iterator[Call]:
    for op in ("MaxIntraOpParallelismDataset", "PrivateThreadPoolDataset"):
        for name in (op, f"Experimental{op}"):
            yield name, [RANGE, L(1)], INTS
    yield "ExperimentalRandomDataset", [*SEEDS], INTS
    yield "RandomDatasetV2", [*SEEDS, SEED_GENERATOR], INTS
    yield "ExperimentalUnbatchDataset", [PAIRS], INTS
    yield "ExperimentalSqlDataset", [np.array(b"sqlite", object), np.array(b"", object), np.array(b"", object)], INTS
    yield "ModelDataset", [RANGE], INTS
    yield "OptimizeDataset", [RANGE, np.array([b"noop_elimination"], object)], INTS
    yield "OptimizeDatasetV2", [RANGE, *[np.array([text], object) for text in (b"a", b"b", b"c")]], INTS
    yield "OptionsDataset", [RANGE], INTS | {"serialized_options": b""}
    yield "RewriteDataset", [RANGE, np.array(b"noop", object)], INTS
    yield "ShuffleAndRepeatDatasetV2", [RANGE, L(2), *SEEDS, L(2), SEED_GENERATOR], INTS
    yield "ShuffleDatasetV3", [RANGE, L(2), *SEEDS, SEED_GENERATOR], INTS
    yield "ExperimentalMapDataset", [RANGE, []], TWICE
    yield "ParallelMapDataset", [RANGE, [], N(2)], TWICE
    yield "ParallelMapDatasetV2", [RANGE, [], L(2)], TWICE
    yield "ParallelFilterDataset", [RANGE, [], L(2)], CALLED | {"predicate": NameAttrList(name="is_large")}
    scan = CALLED | {"f": NameAttrList(name="total"), "Tstate": ["int64"]}
    yield "ExperimentalScanDataset", [RANGE, [L(3)], []], scan
    for op in ("ParallelInterleaveDataset", "ExperimentalParallelInterleaveDataset"):
        yield op, [RANGE, [], L(2), L(1), np.bool_(False), L(1), L(1)], COUNTED
    yield "ParallelInterleaveDatasetV4", [RANGE, [], L(2), L(1), L(1), L(1), L(2)], COUNTED
    texts = [np.array([b"none.csv"], object), np.array(b"", object), L(100), np.bool_(True), np.array(b",", object)]
    for op in ("CSVDataset", "ExperimentalCSVDataset"):
        yield op, [*texts, np.bool_(True), np.array(b"", object), np.zeros(0, L), [np.array([0], L)]], INTS


def _optimizers() -> Iterator[Call]:
    kinds: tuple[tuple[str, Callable[[Any], Made]], ...] = (("", reference), ("Resource", variable))
    for prefix, made_of in kinds:
        v = made_of(ROWS)
        slots = [made_of(ONES) for _ in range(3)]
        yield f"{prefix}ApplyCenteredRMSProp", [v, *slots, *[STEP] * 4, ONES], {}
        yield f"{prefix}ApplyFtrlV2", [v, *slots[:2], ONES, *[STEP] * 4, F(-0.5)], {}
        yield f"{prefix}ApplyProximalAdagrad", [v, slots[0], *[STEP] * 3, ONES], {}
        sparse = [FEW, PLACES]
        yield f"{prefix}SparseApplyAdagradV2", [v, slots[0], STEP, STEP, *sparse], {}
        yield f"{prefix}SparseApplyCenteredRMSProp", [v, *slots, *[STEP] * 4, *sparse], {}
        yield f"{prefix}SparseApplyFtrlV2", [v, *slots[:2], *sparse, *[STEP] * 4, F(-0.5)], {}
        yield f"{prefix}SparseApplyProximalAdagrad", [v, slots[0], *[STEP] * 3, *sparse], {}
        yield f"{prefix}SparseApplyProximalGradientDescent", [v, *[STEP] * 3, *sparse], {}
    yield "ResourceApplyAdamWithAmsgrad", [v, *slots, *[STEP] * 6, ONES], {}
    yield "ResourceSparseApplyAdadelta", [v, *slots[:2], *[STEP] * 3, *sparse], {}
    yield "ResourceSparseApplyAdagrad", [v, slots[0], STEP, *sparse], {}
    yield "ResourceSparseApplyAdagradDA", [v, *slots[:2], *sparse, *[STEP] * 3, L(1)], {}
    yield "ResourceSparseApplyFtrl", [v, *slots[:2], *sparse, *[STEP] * 3, F(-0.5)], {}
    yield "ResourceSparseApplyKerasMomentum", [v, slots[0], STEP, *sparse, STEP], {}
    yield "ResourceSparseApplyMomentum", [v, slots[0], STEP, *sparse, STEP], {}
    yield "ResourceSparseApplyRMSProp", [v, *slots[:2], *[STEP] * 4, *sparse], {}
    for how in ("Add", "Max", "Min", "Sub", "Update"):
        yield f"ResourceScatterNd{how}", [v, PLACES[:, None], FEW], {}
    yield "ResourceCountUpTo", [variable(N(1))], {"limit": 3, "T": "int32"}
    yield "DisableCopyOnRead", [v], {}


def _random() -> Iterator[Call]:
    yield "RngReadAndSkip", [RNG, N(1), np.uint64(2)], {}
    yield "RngSkip", [RNG, L(1), L(2)], {}
    yield "StatefulRandomBinomial", [RNG, L(1), SHAPE, F(3), F(0.5)], {}
    yield "StatefulStandardNormal", [variable(np.array([1, 1, 2, 3], L)), SHAPE], {}
    yield "StatefulUniformInt", [RNG, L(1), SHAPE, L(0), L(9)], {}
    yield "StatelessRandomGetAlg", [], {}
    yield "AnonymousRandomSeedGenerator", [*SEEDS], {}
    yield "DummySeedGenerator", [], {}
    for op, source in (("DeleteSeedGenerator", "AnonymousSeedGenerator"), ("DeleteRandomSeedGenerator", "")):
        flag = [np.bool_(True)] if source else []
        pair = [_port(source or "AnonymousRandomSeedGenerator", [*SEEDS, *flag], port) for port in (0, 1)]
        yield op, pair, {}
    yield "DeleteMemoryCache", [_port("AnonymousMemoryCache", [], port) for port in (0, 1)], {}
    yield "DeleteIterator", [_port("AnonymousIteratorV2", [], port, **INTS) for port in (0, 1)], {}


def _port(op: str, inputs: Sequence[Any], port: int, **attrs: Any) -> Made:
    """One output of a node that another input of the call reads, too."""

    def make(w: _Writer) -> Tensor:
        if port == 0:
            w.before.append(w.b.op(op, *[w.b.constant(value) for value in inputs], **attrs))
        return w.before[-1][port]

    return make


def _queue_of_two_names(w: _Writer) -> Tensor:
    queue = w.b.op("FIFOQueue", component_types=["string"])[0]
    w.before.append(w.b.op("QueueEnqueueMany", queue, [w.b.constant(np.array([b"a", b"b"], object))]))
    return queue


def _others() -> Iterator[Call]:
    yield "AdjustContrast", [IMAGE, F(0.5), F(0), F(1)], {}
    attrs = {"variance_epsilon": 0.1, "scale_after_normalization": True}
    yield "BatchNormWithGlobalNormalization", [IMAGE, *[np.ones(3, F)] * 4], attrs
    yield "CropAndResizeGradBoxes", [IMAGE, IMAGE, np.array([[0, 0, 1, 1]], F), np.array([0], N)], {}
    yield "FakeQuantWithMinMaxArgsGradient", [ONES, ROWS], {}
    yield "FusedBatchNormGradV2", [IMAGE, IMAGE, *[np.ones(3, F)] * 3], {}
    yield "GuaranteeConst", [ROWS], {}
    transforms = np.array([[1, 0, 0, 0, 1, 0, 0, 0]], F)
    yield "ImageProjectiveTransformV2", [IMAGE, transforms, np.array([2, 2], N)], {"interpolation": b"BILINEAR"}
    yield "MutableDenseHashTable", [L(-1)], {"value_dtype": "int64"}
    yield "NonMaxSuppression", [np.array([[0, 0, 1, 1], [0, 0, 1, 0.9]], F), np.array([0.5, 0.6], F), N(2)], {}
    yield "PlaceholderWithDefault", [ROWS], {"shape": (3, 2)}
    yield "QuantizeAndDequantizeV3", [ROWS, F(0), F(5), N(8)], {}
    yield "ScaleAndTranslateGrad", [IMAGE, IMAGE, np.ones(2, F), np.zeros(2, F)], {}
    places = np.array([[0], [2]], L)
    yield "SparseAddGrad", [np.array([1, 2], F), places[:1], places[1:], places], {}
    yield "SparseSliceGrad", [np.array([1], F), places, np.array([1], L), places[1:] - 1], {}
    items = made("TensorListFromTensor", FEW, np.array([2], N), element_dtype="float32")
    yield "TensorListConcat", [items], {"element_dtype": "float32"}
    yield "XlaEinsum", [FEW, FEW], {"equation": b"ab,bc->ac"}
    launched = {"Tconstants": [], "Targs": ["int64"], "Nresources": 0, "Tresults": ["int64"]}
    yield "XlaLaunch", [[], [L(3)], []], launched | {"function": NameAttrList(name="twice")}
    reader = made("IdentityReader")
    yield "ReaderReset", [reader], {}
    yield "ReaderRestoreState", [reader, np.array(b"", object)], {}
    yield "ReaderReadUpTo", [reader, _queue_of_two_names, L(2)], {}
    accumulator = made("ResourceConditionalAccumulator", dtype="float32", shape=(2,))
    yield "ResourceAccumulatorSetGlobalStep", [accumulator, L(3)], {}
    yield "ConsumeMutexLock", [made("MutexLock", made("MutexV2"))], {}


def calls() -> list[Call]:
    """All calls that are written here."""
    return [*_datasets(), *_optimizers(), *_random(), *_others()]


def main() -> None:
    """Adds the calls of ops that have none to the file of calls, in the order of ops."""
    graphs = [(load(data).op, data) for data in read_graphs()]
    present = {op for op, _ in graphs}
    graphs += [(op, _Writer().write(op, inputs, attrs)) for op, inputs, attrs in calls() if op not in present]
    write_graphs(FILE, [data for _, data in sorted(graphs, key=lambda graph: graph[0])])


if __name__ == "__main__":
    main()
