"""Pipelines: they compute what one device computes, in the order of their schedule; what they refuse, and print."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from partita.actors import open_session
from partita.errors import InvalidArgumentError, NotFoundError, UnimplementedError
from partita.graph import Graph, GraphBuilder, Node, gradients, lower_functional, recompute, replicate
from partita.graph.functions.body import instantiate
from partita.graph.parallel.pipeline import pipeline
from partita.graph.parallel.pipelines.schedules import PipelineShape, find_schedule
from tests.goldens import assert_file
from tests.graph.parallel.pipelined_models import LAYERS, difference, trained
from tests.graph.parallel.training_models import TrainingModel

DATA = Path(__file__).with_name("data")
CPUS = [f"cpu:{k}" for k in range(4)]


def made(graph: Graph, stages: Mapping[str, str] | Sequence[str], microbatches: int, **options: Any) -> Graph:
    """The pipeline of a step of `TrainingModel`."""
    return pipeline(graph, stages, batch=["x", "y"], loss="loss", microbatches=microbatches, **options)


@st.composite
def pipelines(draw: st.DrawFn) -> tuple[int, int, int, str]:
    """Numbers of devices, stages per device and micro-batches, and a schedule."""
    schedule = draw(st.sampled_from(["gpipe", "1f1b", "interleaved"]))
    devices, interleave = draw(st.sampled_from([(2, 1), (3, 1), (4, 1), (2, 2), (1, 2)]))
    if schedule == "1f1b":
        interleave = 1
    fitting = [count for count in (1, 2, 4, 8) if schedule != "interleaved" or count % devices == 0]
    devices = devices if fitting else 2
    return devices, interleave, draw(st.sampled_from(fitting or [2, 4, 8])), schedule


@settings(max_examples=12)
@given(
    pipelines(),
    st.sampled_from(["perceptron", "cnn", "transformer", "tower"]),
    st.sampled_from(["sgd", "momentum", "adam", "keras_adam", "keras_momentum"]),
    st.fixed_dictionaries({name: st.booleans() for name in ("clips", "decays", "scales")}),
    st.sampled_from(["", "inline"]),
)
async def test_pipeline_is_one_device(
    how: tuple[int, int, int, str], name: str, optimizer: str, options: dict[str, Any], passes: str
) -> None:
    """Losses and parameters of five steps are those of one device to 1e-10, with calls and with inlined calls."""
    devices, interleave, microbatches, schedule = how
    model = TrainingModel(name, optimizer, **options)
    graph = model.graph()
    cut = made(graph, CPUS[:devices], microbatches, schedule=schedule, interleave=interleave)
    assert difference(await trained(graph, model), await trained(cut, model, passes=passes)) < 1e-10


@pytest.mark.parametrize("schedule", ["gpipe", "1f1b"])
@pytest.mark.parametrize(("dtype", "limit"), [("float32", 1e-5), ("mixed", 1e-2)])
async def test_losses_in_narrow_types(dtype: str, limit: float, schedule: str) -> None:
    """Losses of five steps in float32 and mixed precision are close to those of one device."""
    model = TrainingModel("transformer", "adam", dtype=dtype, scales=True)
    graph = model.graph()
    cut = made(graph, CPUS[:2], 4, schedule=schedule)
    assert difference((await trained(graph, model))[:5], (await trained(cut, model))[:5]) < limit


@pytest.mark.parametrize("optimizer", ["sgd", "momentum", "adam"])
async def test_reference_variables(optimizer: str) -> None:
    """Variables may be references, as in TensorFlow 1."""
    model = TrainingModel("cnn", optimizer, kind="reference", clips=True)
    graph = model.graph()
    assert difference(await trained(graph, model), await trained(made(graph, CPUS[:2], 4), model)) < 1e-10


async def test_sum() -> None:
    """A loss that is a sum over rows is added up, and so are its gradients."""
    model = TrainingModel("perceptron", "sgd", reduction="sum")
    graph = model.graph()
    cut = made(graph, CPUS[:2], 4, reduction="sum")
    assert difference(await trained(graph, model), await trained(cut, model)) < 1e-10


async def test_replicas_of_a_pipeline() -> None:
    """Each replica is a pipeline of its own, on as many devices; gradients are reduced once per step."""
    model = TrainingModel("transformer", "adam", clips=True)
    graph = model.graph()
    cut = made(graph, CPUS[:2], 2)
    several = replicate(cut, [CPUS[:2], CPUS[2:]], batch=["x", "y"], loss="loss")
    assert difference(await trained(graph, model), await trained(several, model)) < 1e-10


@pytest.mark.parametrize("schedule", ["gpipe", "1f1b"])
async def test_pipeline_of_a_step_that_recomputes(schedule: str) -> None:
    """What runs again belongs to the way back of its stage."""
    model = TrainingModel("tower", "adam", clips=True)
    graph = model.graph()
    again = recompute(graph, loss="loss", segments=3)
    cut = made(again, dict(zip(LAYERS, ["cpu:0"] * 2 + ["cpu:1"] * 3, strict=True)), 4, schedule=schedule)
    bodies = {f.signature.name: [n.name for n in f.node_def if "again" in n.name] for f in cut.library.function}
    later = {"backward_s0_adding", "backward_s1_adding"}
    assert {name for name, again in bodies.items() if again} == {"backward_s0", "backward_s1"} | later
    assert difference(await trained(graph, model), await trained(cut, model)) < 1e-10


async def test_scopes_are_stages() -> None:
    """Name scopes are stages; those that follow each other on one device are one, what is in no scope follows."""
    model = TrainingModel("tower", "adam")
    graph = model.graph()
    scopes = dict(zip(LAYERS, ["cpu:0", "cpu:0", "cpu:1", "cpu:2", "cpu:3"], strict=True))
    cut = made(graph, scopes, 4)
    devices = {name: cut.find_node(f"{name}/kernel") for name in LAYERS}
    assert {name: node and node.requested_device for name, node in devices.items()} == {
        name: f"/device:CPU:{device[-1]}" for name, device in scopes.items()
    }
    assert difference(await trained(graph, model), await trained(cut, model)) < 1e-10


async def test_scopes_in_turns() -> None:
    """Scopes whose devices repeat in turns are several stages per device."""
    model = TrainingModel("tower", "momentum")
    graph = model.graph()
    scopes = dict(zip(LAYERS[:4], ["cpu:0", "cpu:1"] * 2, strict=True))
    cut = made(graph, scopes, 4, schedule="interleaved")
    assert difference(await trained(graph, model), await trained(cut, model)) < 1e-10


async def test_outputs_per_row() -> None:
    """What reads tensors with a row per row of the batch has the value that it had."""
    model = TrainingModel("tower", "sgd")
    graph = model.graph()
    feeds = model.feeds(8, 0)
    guesses = []
    for each in (graph, made(graph, CPUS[:2], 4)):
        async with open_session(each, "cpu:4") as session:
            await session.run([], {}, ["init"])
            guesses += await session.run(["guess"], feeds)
    assert np.array_equal(guesses[0], guesses[1])


def test_other_tensors_are_gone() -> None:
    """A tensor that only micro-batches have is not there, nor is what reads one without rows; the argument stays."""
    graph = _normalising()
    cut = pipeline(graph, CPUS[:2], batch="x", loss="loss", microbatches=2, batch_statistics="local")
    for name in ("norm", "negated"):
        assert cut.find_node(name) is None
        assert graph.find_node(name) is not None


async def test_local_statistics() -> None:
    """With local statistics a micro-batch normalises by its own; moving averages get the mean over micro-batches."""
    graph = _normalising()
    cut = pipeline(graph, CPUS[:2], batch="x", loss="loss", microbatches=2, batch_statistics="local")
    x = np.arange(8, dtype=np.float32).reshape(8, 1, 1, 1)
    async with open_session(cut, "cpu:2") as session:
        await session.run([], {}, ["init"])
        await session.run([], {"x": x}, ["train"])
        (mean,) = await session.run(["mean/read"])
    assert mean == pytest.approx([x.mean()])


def _normalising() -> Graph:
    """A step with batch normalisation, which keeps the last mean."""
    b = GraphBuilder()
    x = b.placeholder("x", "float32", (None, 1, 1, 1))
    mean, scale = (
        b.op("VarHandleOp", name=n, dtype="float32", shape=(1,), shared_name=n)[0] for n in ("mean", "scale")
    )
    value = b.op("ReadVariableOp", scale, dtype="float32")
    b.op("ReadVariableOp", mean, dtype="float32", name="mean/read")
    zero, empty = b.constant([0.0]), np.zeros(0, np.float32)
    norm = b.op("FusedBatchNormV3", x, value, zero, empty, empty, is_training=True, name="norm")
    b.op("Neg", norm[1], name="negated")
    b.op("Mean", b.op("Square", norm[0] + 1.0), [0, 1, 2, 3], name="loss")
    (slope,) = gradients(b, ["loss"], [value[0].name])
    statistic = b.op("AssignVariableOp", mean, norm[1], name="keep")
    b.group(b.op("ResourceApplyGradientDescent", scale, np.float32(0.1), slope), statistic, name="train")
    b.group(*(b.op("AssignVariableOp", v, [1.0]) for v in (mean, scale)), name="init")
    return b.graph()


def test_functions_have_each_constant_once() -> None:
    """Layers of a stage read the same shapes and axes: equal constants of a function are one node."""
    cut = made(TrainingModel("transformer", "adam").graph(), CPUS[:2], 2)
    for function in cut.library.function:
        values = [node.attr["value"].tensor.SerializeToString() for node in function.node_def if node.op == "Const"]
        assert values
        assert len(set(values)) == len(values), function.signature.name


def test_printed_pipeline() -> None:
    """Two stages and two micro-batches: calls, their order, and one update; and the functions that they call."""
    model = TrainingModel("tower", "sgd", dtype="float32")
    cut = made(model.graph(), {"first": "gpu:0", "second": "gpu:1"}, 2)
    bodies = [f"{f.signature.name}: {instantiate(cut.functions, f.signature.name).graph}" for f in cut.library.function]
    assert_file("\n\n".join([str(cut), *bodies]), DATA / "pipeline.txt")


@pytest.mark.parametrize("schedule", ["gpipe", "1f1b", "interleaved"])
def test_order_of_calls(schedule: str) -> None:
    """Each call waits for the one before it on its device; once inlined, all of its nodes wait for all of that."""
    graph = TrainingModel("tower", "sgd").graph()
    cut = made(graph, CPUS[:2], 2, schedule=schedule)
    inlined = lower_functional(cut, inline_calls=True)
    for ordered in find_schedule(schedule).calls(PipelineShape(2, 1, 2)):
        for before, call in pairwise(f"pipeline/{call.name}" for call in ordered):
            assert [e.src.name for e in node_of(cut, call).in_edges() if e.is_control] == [before]
            later = [node.id for node in inlined.op_nodes() if node.name.startswith(f"{call}/")]
            last = {node.id for node in inlined.op_nodes() if node.name.startswith(f"{before}/")}
            assert all(last <= _ancestors(inlined, node) for node in later)


def _ancestors(graph: Graph, node: int) -> set[int]:
    seen, waiting = {node}, [node]
    while waiting:
        sources = {graph.edge_ends(edge)[0] for edge in graph.in_edge_ids(waiting.pop())} - seen
        seen |= sources
        waiting += sources
    return seen


def node_of(graph: Graph, name: str) -> Node:
    found = graph.find_node(name)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("stages", "options", "message"),
    [
        ({"first": "cpu:0", "thrid": "cpu:1"}, {}, "stage 'thrid' has no node .*; did you mean 'third'"),
        ({"second": "cpu:0", "first": "cpu:1"}, {}, "of stage 0 reads 'first/tanh' of stage 1"),
        ({"first": "cpu:0", "second": "cpu:1", "third": "cpu:0"}, {}, "stages of one device must follow"),
        ([], {}, "there are no stages"),
        (["cpu:0", "cpu:0"], {}, "device 'cpu:0' is given twice; use interleave"),
        (["cpu:0", "cpu:1"], {"schedule": "2f2b"}, "there is no schedule '2f2b'"),
        (["cpu:0", "cpu:1"], {"schedule": "interleaved", "microbatches": 3}, "microbatches is 3; use a multiple of 2"),
        (["cpu:0", "cpu:1"], {"microbatches": 0}, "microbatches is 0; use a number of at least 1"),
        (["cpu:0", "cpu:1"], {"interleave": 2, "schedule": "1f1b"}, "use schedule 'interleaved'"),
        (["cpu:0", "cpu:1"], {"weights": {"frist": 1.0}}, "no node .* is 'frist' .*; did you mean 'first'"),
        (
            ["cpu:0", "cpu:1"],
            {"weights": lambda node: -1.0},
            "the cost of node .* is -1.0; give a number of at least 0",
        ),
        (["cpu:0", "cpu:1"], {"reduction": "max"}, "reduction is 'max'; use 'mean' or 'sum'"),
        (["cpu:0", "gpu"], {"batch_statistics": "global"}, "batch_statistics is 'global'; use 'refuse' or 'local'"),
    ],
)
def test_stages_that_cannot_be(stages: Any, options: dict[str, Any], message: str) -> None:
    """Stages, schedules and numbers that do not fit are refused by name."""
    graph = TrainingModel("tower", "sgd").graph()
    with pytest.raises(InvalidArgumentError, match=message):
        made(graph, stages, **{"microbatches": 4, **options})


def test_batch_that_does_not_divide() -> None:
    """The error names the nearest sizes that do."""
    graph = TrainingModel("tower", "sgd", rows=10).graph()
    message = "the 10 rows of 'x' do not divide into 4 micro-batches; use a batch of 8 or 12 rows, or 5 micro-batches"
    with pytest.raises(InvalidArgumentError, match=message):
        made(graph, CPUS[:2], 4)


def test_unknown_loss() -> None:
    """A loss or batch that is not there is not found."""
    graph = TrainingModel("tower", "sgd").graph()
    with pytest.raises(NotFoundError, match="no tensor 'lost'"):
        pipeline(graph, CPUS[:2], batch=["x", "y"], loss="lost", microbatches=2)


def test_batch_statistics_are_refused() -> None:
    """Normalisation by the batch is refused, with the node."""
    with pytest.raises(UnimplementedError, match="node 'norm' \\(FusedBatchNormV3\\) uses a value of the whole batch"):
        pipeline(_normalising(), CPUS[:2], batch="x", loss="loss", microbatches=2)


def test_queue_is_refused() -> None:
    """A loss that depends on a queue is refused, with the node that takes from it."""
    b = GraphBuilder()
    queue = b.op("FIFOQueueV2", component_types=["float32"], shapes=[(4,)])
    taken = b.op("QueueDequeueV2", queue, component_types=["float32"], name="taken")
    x = b.placeholder("x", "float32", (None, 4))
    w = b.op("VarHandleOp", name="w", dtype="float32", shape=(4,), shared_name="w")[0]
    value = b.op("ReadVariableOp", w, dtype="float32")
    b.op("Mean", b.op("Square", x * value - taken), [0, 1], name="loss")
    (slope,) = gradients(b, ["loss"], [value[0].name])
    b.group(b.op("ResourceApplyGradientDescent", w, np.float32(0.1), slope), name="train")
    with pytest.raises(
        UnimplementedError, match="the loss depends on 'FIFOQueueV2' \\(FIFOQueueV2\\), a queue or dataset"
    ):
        pipeline(b.graph(), CPUS[:2], batch="x", loss="loss", microbatches=2)


@pytest.mark.parametrize("name", ["perceptron", "cnn", "transformer", "tower"])
async def test_sizes_that_are_built_in(name: str) -> None:
    """A graph that was made for eight rows becomes one for micro-batches of two; what is outside stays for eight."""
    model = TrainingModel(name, "adam", rows=8, clips=True)
    graph = model.graph()
    cut = made(graph, CPUS[:2], 4)
    assert difference(await trained(graph, model), await trained(cut, model)) < 1e-10


@pytest.mark.parametrize("name", ["perceptron", "cnn", "transformer", "tower"])
@pytest.mark.parametrize("count", [1, 2])
async def test_graph_of_one_micro_batch(name: str, count: int) -> None:
    """A graph that was made for two rows runs eight in four micro-batches, on one stage or two, without resizing."""
    whole, part = (TrainingModel(name, "adam", rows=rows, clips=True) for rows in (8, 2))
    graph, small = whole.graph(), part.graph()
    cut = made(small, CPUS[:count], 4, sized="microbatch", gradients=part.slopes)
    assert difference(await trained(graph, whole), await trained(cut, part)) < 1e-10
    assert node_of(cut, "x").attrs["shape"][0] == 8
    assert node_of(small, "x").attrs["shape"][0] == 2


def test_gradient_of_no_variable() -> None:
    """A variable that the graph does not have is refused by name."""
    model = TrainingModel("tower", "sgd", rows=2)
    graph = model.graph()
    with pytest.raises(NotFoundError, match="the graph has no variable 'nothing'; name the node that makes it"):
        made(graph, CPUS[:2], 4, sized="microbatch", gradients={"nothing": model.slopes[0]}, others=model.slopes[1:])


async def test_sums_in_float32() -> None:
    """Gradients of half precision are cast before they are added up, and what widened them reads these sums."""
    b = GraphBuilder()
    x = b.placeholder("x", "float32", (1, 1))
    w = b.op("VarHandleOp", name="w", dtype="float32", shape=(1, 1), shared_name="w")[0]
    half = b.op("Cast", b.op("ReadVariableOp", w, dtype="float32", name="w/read"), DstT="float16")[0]
    b.op("Sum", b.op("MatMul", b.op("Cast", x, DstT="float16"), half), [0, 1], name="loss")
    (slope,) = gradients(b, ["loss"], [half.name])
    assert slope is not None
    wide = b.op("Cast", slope, DstT="float32", name="wide")
    b.op("Identity", slope, name="narrow")
    b.group(b.op("ResourceApplyGradientDescent", w, np.float32(1), wide), name="train")
    b.group(b.op("AssignVariableOp", w, np.zeros((1, 1), np.float32)), name="init")
    options = {"batch": "x", "loss": "loss", "microbatches": 3, "reduction": "sum", "sized": "microbatch"}
    found = {}
    for accumulate in (None, "float32"):
        cut = pipeline(b.graph(), ["cpu:0"], gradients=slope, accumulate=accumulate, **options)  # type: ignore[arg-type]
        async with open_session(cut, "cpu:1") as session:
            await session.run([], {}, ["init"])
            feeds = {"x": np.array([[2048], [1], [1]], np.float32)}
            found[accumulate] = [float(np.squeeze(v)) for v in await session.run(["wide", "narrow"], feeds)]
    assert found == {None: [2048, 2048], "float32": [2050, 2050]}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sized": "row"}, "sized is 'row'; use 'batch' or 'microbatch'"),
        ({"sized": "microbatch"}, "name the gradients of a graph that is sized for a micro-batch, and of no other"),
        ({"gradients": ["loss"]}, "name the gradients of a graph that is sized for a micro-batch, and of no other"),
        (
            {"sized": "microbatch", "gradients": ["first/kernel/read"]},
            "'first/kernel/read' does not depend on the batch",
        ),
        ({"accumulate": "float64"}, "accumulate is 'float64'; use None or 'float32'"),
    ],
)
def test_micro_batches_that_cannot_be(options: dict[str, Any], message: str) -> None:
    """Words and gradients that do not fit are refused by name."""
    graph = TrainingModel("tower", "sgd").graph()
    with pytest.raises(InvalidArgumentError, match=message):
        made(graph, CPUS[:2], 4, **options)


def test_gradient_that_is_not_named() -> None:
    """An update by a tensor of the micro-batch that is not added up is refused, with the tensor."""
    model = TrainingModel("tower", "sgd", rows=2)
    graph = model.graph()
    with pytest.raises(UnimplementedError, match=r"updates a variable by an activation|none of the named gradients"):
        made(graph, CPUS[:2], 4, sized="microbatch", gradients=model.slopes[1:])
