"""Pulling an element: it waits for functions, survives cancelled steps and errors, and neither recurses nor blocks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import trio

from partita.actors import open_session
from partita.actors.sessions.session import Session
from partita.errors import FailedPreconditionError, InvalidArgumentError, OutOfRangeError, PartitaError
from partita.graph.attrs import encode
from partita.graph.builder import GraphBuilder
from partita.graph.builder.handles import Tensor
from partita.graph.dtypes import DataType, Shape
from partita.graph.protos import GraphDef
from tests.devices.kernels.datasets.pipelines import INT64, Pipeline, all_of, drained
from tests.function_defs import func_attr, function_of
from tests.strategies import cpu


def long(b: GraphBuilder, x: Sequence[Tensor]) -> Tensor:
    """x + 70, in so many nodes that a call is no single instruction."""
    total = x[0]
    for _ in range(70):
        total = b.op("AddV2", total, np.int64(1))[0]
    return total


def is_late(b: GraphBuilder, x: Sequence[Tensor]) -> Tensor:
    """Whether x is one of the last numbers."""
    return b.op("GreaterEqual", x[0], np.int64(9_999))[0]


def is_late_at_length(b: GraphBuilder, x: Sequence[Tensor]) -> Tensor:
    """Whether x is one of the last numbers, in many nodes."""
    return b.op("GreaterEqual", long(b, x), np.int64(1_069))[0]


@pytest.mark.parametrize(("predicate", "stop"), [(is_late, 10_001), (is_late_at_length, 1_001)])
async def test_one_pull_may_take_thousands_of_calls(predicate: Any, stop: int) -> None:
    """The stack does not grow with the elements that are filtered out, whether calls are short or long."""
    p = Pipeline()
    p.add_function("is_late", predicate)
    dataset = p.mapped("FilterDataset", p.range(stop), "is_late", attr="predicate")
    assert await all_of(p.iterated(dataset)) == [stop - 2, stop - 1]


async def test_other_tasks_run_while_elements_are_skipped() -> None:
    """A pull of many elements gives way when the time budget is used up."""
    p = Pipeline()
    graph, turns = p.iterated(p.counted("SkipDataset", p.range(30_000), 29_999)), 0
    async with open_session(graph, "cpu:1", budget_s=0) as session:
        await session.run([], targets=["init"])
        async with trio.open_nursery() as nursery:

            async def count() -> None:
                nonlocal turns
                while True:
                    turns += 1
                    await trio.lowlevel.checkpoint()

            nursery.start_soon(count)
            assert await session.run("next") == [29_999]
            nursery.cancel_scope.cancel()
    assert turns > 1_000


def waiting(*, device: str = "") -> GraphDef:
    """A dataset of what a function takes from a queue, plus 10 x for x = 0, 1, ...; `put` adds to the queue."""
    p = Pipeline()
    form: dict[str, Any] = {"shapes": [()], "container": b"", "shared_name": b"q", "capacity": 9}
    queue = p.b.op("FIFOQueueV2", name="queue", component_types=[INT64], attrs=form)[0]
    p.b.op("QueueEnqueueV2", queue, [p.b.placeholder("item", "int64", ())], name="put")
    body = GraphBuilder()
    x, handle = body.placeholder("x", "int64", ()), body.placeholder("q", DataType.RESOURCE, ())
    taken = body.op("QueueDequeueV2", handle, component_types=[INT64], name="taken")[0]
    tens = body.op("Mul", x, np.int64(10), device=device)
    body.op("AddV2", tens, taken, name="sum", device=device)
    p.b.function(function_of("from_queue", body.graph_def(), ["x:0", "q:0"], ["sum:0"]))
    mapped = p.op("MapDataset", p.range(3), [queue], f=func_attr("from_queue"), Targuments=[DataType.RESOURCE])
    return p.iterated(mapped)


async def test_a_pull_waits_for_what_its_function_waits_for() -> None:
    """A mapped function dequeues: the step waits until another step enqueues. Pulls are served in order."""
    async with open_session(waiting(), "cpu:1") as session:
        await session.run([], targets=["init"])
        pulled: list[list[Any]] = [[], []]
        async with trio.open_nursery() as nursery:
            for one in pulled:
                nursery.start_soon(take, session, one)
                await trio.testing.wait_all_tasks_blocked()
            assert pulled == [[], []]
            for item in (5, 6):
                await session.run([], {"item": item}, targets=["put"])
        assert pulled == [[5], [16]]


async def take(session: Session, pulled: list[Any]) -> None:
    """Pulls one element in a step of its own."""
    pulled += await session.run("next")


async def test_a_cancelled_pull_loses_no_element() -> None:
    """The next step gets the element that the cancelled one was waiting for, and nothing is taken from the queue."""
    async with open_session(waiting(), "cpu:1") as session:
        await session.run([], targets=["init"])
        for _ in range(2):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(take, session, [])
                await trio.testing.wait_all_tasks_blocked()
                nursery.cancel_scope.cancel()
        for item in (7, 8, 9):
            await session.run([], {"item": item}, targets=["put"])
        assert await drained(session) == [7, 18, 29]


async def test_those_behind_a_cancelled_pull_take_its_place() -> None:
    """Of two steps that wait the first is cancelled."""
    async with open_session(waiting(), "cpu:1") as session:
        await session.run([], targets=["init"])
        pulled: list[Any] = []
        async with trio.open_nursery() as nursery:
            async with trio.open_nursery() as first:
                first.start_soon(take, session, [])
                await trio.testing.wait_all_tasks_blocked()
                nursery.start_soon(take, session, pulled)
                await trio.testing.wait_all_tasks_blocked()
                first.cancel_scope.cancel()
            await session.run([], {"item": 1}, targets=["put"])
        assert pulled == [1]


async def test_a_sequence_that_begins_anew_drops_the_pull_that_was_cancelled() -> None:
    """After the initialiser has run again the first element is first."""
    async with open_session(waiting(), "cpu:1") as session:
        await session.run([], targets=["init"])
        await session.run([], {"item": 4}, targets=["put"])
        assert await session.run("next") == [4]
        async with trio.open_nursery() as nursery:
            nursery.start_soon(take, session, [])
            await trio.testing.wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
        await session.run([], targets=["init"])
        await session.run([], {"item": 4}, targets=["put"])
        assert await session.run("next") == [4]


async def test_functions_run_on_several_devices() -> None:
    """The nodes of a mapped function go where they ask to go, and so do the consumers of elements."""
    graph = waiting(device=cpu(1))
    graph.node.add(name="y", op="Neg", input=["next"], device=cpu(1)).attr["T"].CopyFrom(encode(INT64, "type"))
    async with open_session(graph, "cpu:2") as session:
        await session.run([], targets=["init"])
        for x in range(3):
            await session.run([], {"item": 1}, targets=["put"])
            assert await session.run("y") == [-10 * x - 1]


def failing(*, in_many_nodes: bool) -> GraphDef:
    """A dataset of 12 // (x - 1) for x = 0, 1, 2, which has no value at 1."""

    def divide(b: GraphBuilder, x: Sequence[Tensor]) -> Tensor:
        divisor = b.op("Sub", long(b, x) if in_many_nodes else x[0], np.int64(71 if in_many_nodes else 1))
        return b.op("FloorDiv", np.int64(12), divisor, name="quotient")[0]

    p = Pipeline()
    p.add_function("divide", divide)
    return p.iterated(p.mapped("MapDataset", p.range(3), "divide"))


@pytest.mark.parametrize("in_many_nodes", [False, True])
async def test_an_element_whose_function_fails_is_an_error_and_is_passed_over(in_many_nodes: bool) -> None:
    """TensorFlow 2.21 goes on with the next element too. The error names the node in the function and the pull."""
    async with open_session(failing(in_many_nodes=in_many_nodes), "cpu:1") as session:
        await session.run([], targets=["init"])
        assert await session.run("next") == [-12]
        with pytest.raises(PartitaError, match="zero") as error:
            await session.run("next")
        assert (error.value.node, error.value.function, error.value.calls) == ("quotient", "divide", ("next",))
        assert await session.run("next") == [12]
        with pytest.raises(OutOfRangeError, match="End of sequence"):
            await session.run("next")


async def test_an_iterator_must_be_initialised() -> None:
    """The error is TensorFlow's."""
    p = Pipeline()
    async with open_session(p.iterated(p.range(1)), "cpu:1") as session:
        with pytest.raises(FailedPreconditionError, match="has not been initialized"):
            await session.run("next")


async def test_a_mapped_function_that_is_out_of_range_ends_or_fails() -> None:
    """The end of the sequence, or an error where every element must have a result: as TensorFlow 2.21."""
    for keeps in (False, True):
        p = Pipeline()

        def closed(b: GraphBuilder, x: Sequence[Tensor]) -> Tensor:
            queue = b.op("FIFOQueueV2", component_types=[INT64], shapes=[()])[0]
            close = b.op("QueueCloseV2", queue)
            return b.op("QueueDequeueV2", queue, component_types=[INT64], control=[close])[0]

        p.add_function("closed", closed)
        graph = p.iterated(p.mapped("MapDataset", p.range(2), "closed", preserve_cardinality=keeps))
        if not keeps:
            assert await all_of(graph) == []
            continue
        with pytest.raises(InvalidArgumentError, match="Function invocation produced OutOfRangeError: FIFOQueue"):
            await all_of(graph)


async def test_a_function_with_the_wrong_number_of_arguments_is_refused() -> None:
    """When the first element is pulled."""
    p = Pipeline()
    with pytest.raises(InvalidArgumentError, match="Expects 2 arguments, but 1 is provided"):
        await all_of(p.iterated(p.mapped("MapDataset", p.range(2), "plus")))


Stage = Callable[[Pipeline, Tensor], Tensor]


def after_errors(stage: Stage, shape: Shape = ()) -> GraphDef:
    """A stage behind a map over range(12) that fails at 2 and at 7."""

    def fails(b: GraphBuilder, x: Sequence[Tensor]) -> Tensor:
        divisor = b.op("Mul", b.op("Sub", x[0], np.int64(2)), b.op("Sub", x[0], np.int64(7)))
        zero = b.op("Mul", b.op("FloorDiv", np.int64(1), divisor), np.int64(0))
        return b.op("AddV2", x[0], zero)[0]

    p = Pipeline()
    p.add_function("fails", fails)
    return p.iterated(stage(p, p.mapped("MapDataset", p.range(12), "fails")), shape)


BATCH = (np.int64(4), np.bool_(False))


@pytest.mark.parametrize(
    ("stage", "shape", "expected"),
    [
        (lambda p, d: p.op("BatchDatasetV2", d, *BATCH, shapes=[(None,)]), (None,), ["", "", [8, 9, 10, 11]]),
        (
            lambda p, d: p.op("ParallelBatchDataset", d, BATCH[0], np.int64(2), BATCH[1], shapes=[(None,)]),
            (None,),
            ["", [3, 4, 5, 6], "", [8, 9, 10, 11]],
        ),
        (lambda p, d: p.counted("SkipDataset", d, 4), (), ["", "", 8, 9, 10, 11]),
        (lambda p, d: p.counted("ShardDataset", d, 3, 1), (), [1, "", 5, "", 10]),
        (
            lambda p, d: p.mapped(
                "MapDataset", p.op("ZipDataset", [d, p.range(12)], types=[INT64] * 2, shapes=[(), ()]), "plus"
            ),
            (),
            [0, 2, "", 6, 8, 10, 12, "", 16, 18, 20, 22],
        ),
    ],
    ids=["batch", "parallel batch", "skip", "shard", "zip"],
)
async def test_pipelines_go_on_after_errors_as_tensorflow_does(stage: Stage, shape: Shape, expected: list[Any]) -> None:
    """TensorFlow 2.21 gives these elements, and errors where "" stands."""
    elements: list[Any] = []
    async with open_session(after_errors(stage, shape), "cpu:1") as session:
        await session.run([], targets=["init"])
        while True:
            try:
                elements += [np.asarray((await session.run("next"))[0]).tolist()]
            except OutOfRangeError:
                break
            except PartitaError:
                elements.append("")
    assert elements == expected
