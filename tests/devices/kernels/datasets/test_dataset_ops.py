"""What is computed of whole datasets: reductions, scans, caches, cardinalities, the only element."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from partita.actors import open_session
from partita.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    PartitaError,
)
from partita.graph.builder import GraphBuilder
from partita.graph.builder.handles import Tensor
from partita.graph.dtypes import DataType
from tests.devices.kernels.datasets.pipelines import INT64, Pipeline, all_of, drained
from tests.function_defs import func_attr, function_of

GRAPH_SEED = 87654321  # TensorFlow's first seed where only an op has one
STATE: dict[str, Any] = {"Tstate": [INT64], "Targuments": []}


async def value_of(p: Pipeline, tensor: Tensor) -> Any:
    """The value of one tensor, as a Python value."""
    async with open_session(p.b.graph_def(), "cpu:1") as session:
        return np.asarray((await session.run(tensor.name))[0]).tolist()


@settings(max_examples=10)
@given(st.integers(0, 9), st.integers(-5, 5))
async def test_a_reduction_is_a_loop(stop: int, start: int) -> None:
    """From the initial state on, over all elements in order."""
    p = Pipeline()
    total = p.op("ReduceDataset", p.range(stop), [np.int64(start)], [], f=func_attr("plus"), **STATE)
    assert await value_of(p, total) == start + sum(range(stop))


@settings(max_examples=10)
@given(st.integers(0, 9), st.integers(-5, 5))
async def test_a_scan_gives_the_states_on_the_way(stop: int, start: int) -> None:
    """A function of state and element gives the next state and an element."""
    p = Pipeline()
    b = GraphBuilder()
    state, element = (b.placeholder(name, "int64", ()) for name in ("state", "element"))
    b.op("AddV2", state, element, name="sum")
    p.b.function(function_of("step", b.graph_def(), ["state:0", "element:0"], ["sum:0", "sum:0"]))
    dataset = p.op("ScanDataset", p.range(stop), [np.int64(start)], [], f=func_attr("step"), **STATE)
    assert await all_of(p.iterated(dataset)) == list(accumulate(range(stop), initial=start))[1:]


async def test_a_reduction_in_a_function_waits_for_what_its_function_waits_for() -> None:
    """Calls in calls: a function reduces a dataset with a function of many nodes."""
    p = Pipeline()

    def long_plus(b: GraphBuilder, x: Sequence[Tensor]) -> Tensor:
        total = b.op("AddV2", x[0], x[1])[0]
        for _ in range(70):
            total = b.op("Neg", total)[0]
        return total

    def reduced(b: GraphBuilder, x: Sequence[Tensor]) -> Tensor:
        form: dict[str, Any] = {"output_types": [INT64], "output_shapes": [()]}
        numbers = b.op("RangeDataset", np.int64(0), x[0], np.int64(1), attrs=form)
        attrs = {"f": func_attr("long_plus"), **STATE, **form}
        return b.op("ReduceDataset", numbers, [np.int64(0)], [], attrs=attrs)[0]

    p.add_function("long_plus", long_plus, 2)
    p.add_function("reduced", reduced)
    dataset = p.mapped("MapDataset", p.range(6), "reduced")
    assert await all_of(p.iterated(dataset)) == [sum(range(x)) for x in range(6)]


@pytest.mark.parametrize(("stop", "message"), [(0, "Dataset was empty."), (2, "Dataset had more than one element.")])
async def test_the_only_element_must_be_the_only_one(stop: int, message: str) -> None:
    """The messages are TensorFlow's."""
    p = Pipeline()
    assert await value_of(p, p.op("DatasetToSingleElement", p.counted("SkipDataset", p.range(5), 4))) == 4
    with pytest.raises(InvalidArgumentError, match=message):
        await value_of(p, p.op("DatasetToSingleElement", p.range(stop)))


async def test_cardinalities_are_tensorflows() -> None:
    """-1 for no end, -2 where only counting would tell; TensorFlow 2.21 gives these."""
    p = Pipeline()
    numbers, endless = p.range(7), p.counted("RepeatDataset", p.range(3), -1)
    some = p.mapped("FilterDataset", p.range(3), "is_even", attr="predicate")
    window = [np.int64(3), np.int64(2), np.int64(2), np.bool_(True)]
    rows = p.op("BatchDatasetV2", numbers, np.int64(3), np.bool_(True), shapes=[(3,)])
    cases = {
        p.mapped("FlatMapDataset", numbers, "below"): -2,
        some: -2,
        p.op("WindowDataset", numbers, *window, types=[DataType.VARIANT]): 2,
        p.op("UnbatchDataset", rows): 6,
        p.op("ZipDataset", [numbers, endless], types=[INT64, INT64], shapes=[(), ()]): 7,
        p.counted("SkipDataset", endless, 5): -1,
        p.op("ConcatenateDataset", some, endless): -1,
        p.counted("TakeDataset", some, 2): -2,
        p.counted("RepeatDataset", some, 0): 0,
        p.counted("ShardDataset", p.range(10), 3, 1): 3,
        p.counted("AssertCardinalityDataset", some, 7): 7,
        p.op("BatchDataset", endless, np.int64(3), shapes=[(None,)]): -1,
    }
    tensors = [p.b.op("DatasetCardinality", dataset)[0].name for dataset in cases]
    async with open_session(p.b.graph_def(), "cpu:1") as session:
        assert [int(value) for value in await session.run(tensors)] == list(cases.values())


async def test_a_broken_promise_of_a_cardinality_is_an_error() -> None:
    """Too few and too many; the messages are TensorFlow's."""
    for count, message in ((3, "3 elements but contained at least 4 elements"), (5, "5 elements but contained only 4")):
        p = Pipeline()
        with pytest.raises(FailedPreconditionError, match=f"was expected to contain {message}"):
            await all_of(p.iterated(p.counted("AssertCardinalityDataset", p.range(4), count)))


def drawing(p: Pipeline, dataset: Tensor, seed: int = 5) -> Tensor:
    """A random number below 1000 for each element."""
    b = GraphBuilder()
    x = b.placeholder("x", "int64", ())
    seeds: dict[str, Any] = {"seed": GRAPH_SEED if seed else 0, "seed2": seed}
    drawn = b.op("RandomUniformInt", np.zeros(0, np.int32), np.int64(0), np.int64(1000), attrs=seeds)
    b.op("AddV2", b.op("Sub", x, x), drawn, name="sum")
    p.b.function(function_of("random", b.graph_def(), ["x:0"], ["sum:0"]))
    return p.mapped("MapDataset", dataset, "random")


async def test_random_ops_in_functions_begin_anew_with_each_iterator() -> None:
    """And go on from epoch to epoch. TensorFlow 2.21 gives these numbers for the operation seed 5."""
    p = Pipeline()
    graph = p.iterated(p.counted("RepeatDataset", drawing(p, p.range(3)), 2))
    async with open_session(graph, "cpu:1") as session:
        for _ in range(2):
            await session.run([], targets=["init"])
            assert await drained(session) == [135, 676, 578, 764, 873, 674]


async def test_random_ops_without_seeds_never_begin_anew() -> None:
    """Each iterator draws other numbers; a session with the same seed the same ones."""

    async def epochs() -> list[list[int]]:
        p = Pipeline()
        async with open_session(p.iterated(drawing(p, p.range(9), 0)), "cpu:1", seed=1) as session:
            numbers = []
            for _ in range(2):
                await session.run([], targets=["init"])
                numbers.append(await drained(session))
            return numbers

    first, second = await epochs()
    assert first != second
    assert await epochs() == [first, second]


async def test_two_iterators_at_a_time_draw_apart() -> None:
    """Neither takes numbers from the other."""
    p = Pipeline()
    dataset = drawing(p, p.range(3))
    pair = p.op("ZipDataset", [dataset, p.range(3)], types=[INT64, INT64], shapes=[(), ()])
    graph = p.iterated(p.mapped("MapDataset", pair, "plus"))
    attrs: dict[str, Any] = {"output_types": [INT64], "output_shapes": [()]}
    other = p.b.op("IteratorV2", attrs={**attrs, "shared_name": b"other", "container": b""})
    p.b.op("MakeIterator", dataset, other, name="init_other")
    p.b.op("IteratorGetNext", other, name="next_other", attrs=attrs)
    graph = p.b.graph_def()
    async with open_session(graph, "cpu:1") as session:
        await session.run([], targets=["init", "init_other"])
        for place, number in enumerate((135, 676, 578)):
            assert await session.run(["next", "next_other"]) == [number + place, number]


async def test_a_cache_remembers_elements_once_all_were_seen() -> None:
    """The second epoch equals the first, although the source draws random numbers; without a cache it differs."""
    for op, shared in (("CacheDataset", False), ("CacheDatasetV2", True), ("", False)):
        p = Pipeline()
        dataset = drawing(p, p.range(3))
        if op:
            handle = [p.b.op("AnonymousMemoryCache")[0]] if shared else []
            dataset = p.op(op, dataset, b"", *handle)
        elements = await all_of(p.iterated(p.counted("RepeatDataset", dataset, 2)))
        assert (elements[:3] == elements[3:]) is bool(op)


async def test_only_the_first_of_equal_elements_stays() -> None:
    """And errors may be passed over."""
    p = Pipeline()
    p.add_function("rest", lambda b, x: b.op("FloorMod", np.int64(5), x[0])[0])
    rests = p.mapped("MapDataset", p.range(7), "rest")
    assert await all_of(p.iterated(p.op("UniqueDataset", p.op("IgnoreErrorsDataset", rests)))) == [0, 1, 2, 5]


async def test_iterators_are_found_by_their_string_handles() -> None:
    """In the form of TensorFlow's ResourceHandleProto, from a step of any request."""
    p = Pipeline()
    graph = p.iterated(p.range(3))
    handle = p.b.op("IteratorToStringHandle", p.b.tensor("iterator:0"), name="text")
    again = p.b.op("IteratorFromStringHandleV2", p.b.placeholder("given", "string", ()), attrs={})
    attrs = {"output_types": [INT64], "output_shapes": [()]}
    p.b.op("IteratorGetNext", again, name="other", attrs=attrs)
    graph = p.b.graph_def()
    assert handle.name == "text"
    async with open_session(graph, "cpu:1") as session:
        await session.run([], targets=["init"])
        (text,) = await session.run("text")
        assert await session.run("other", {"given": text}) == [0]
        assert await drained(session) == [1, 2]
        with pytest.raises(InvalidArgumentError, match="Could not parse string_handle"):
            await session.run("other", {"given": b"\xff"})


async def test_a_dataset_must_have_the_form_of_its_iterator() -> None:
    """Types are equal, shapes compatible."""
    p = Pipeline()
    with pytest.raises(InvalidArgumentError, match="Incompatible shapes at component 0"):
        await all_of(p.iterated(p.range(3), (2,)))
    q = Pipeline()
    attrs: dict[str, Any] = {"Toutput_types": [DataType.FLOAT], "output_shapes": [()]}
    floats = q.b.op("TensorDataset", [np.float32(1)], attrs=attrs)[0]
    with pytest.raises(PartitaError, match="Data type mismatch at component 0: expected int64 but got float"):
        await all_of(q.iterated(floats))


async def test_one_shot_iterators_and_optionals() -> None:
    """The function that makes the dataset is called once; the end is an optional without value."""
    p = Pipeline()
    form: dict[str, Any] = {"output_types": [INT64], "output_shapes": [()]}
    made = GraphBuilder()
    made.op("RangeDataset", *[np.int64(n) for n in (0, 2, 1)], name="made", attrs=form)
    p.b.function(function_of("make", made.graph_def(), [], ["made:0"]))
    handle = p.b.op("OneShotIterator", attrs={**form, "dataset_factory": func_attr("make")})
    optional = p.b.op("IteratorGetNextAsOptional", handle, attrs=form)
    has = p.b.op("OptionalHasValue", optional, name="has")
    async with open_session(p.b.graph_def(), "cpu:1") as session:
        assert [bool((await session.run(has.name))[0]) for _ in range(4)] == [True, True, False, False]


@pytest.mark.parametrize("prefix", ["", "Experimental"])
async def test_pools_and_measurements_change_no_element(prefix: str) -> None:
    """A pool needs a number of threads that is not negative."""
    for threads in (2, -1):
        p = Pipeline()
        pool = p.b.op(f"{prefix}ThreadPoolHandle", num_threads=threads, display_name=b"pool")[0]
        dataset = p.op(f"{prefix}ThreadPoolDataset", p.range(3), pool)
        for op in ("LatencyStatsDataset", "BytesProducedStatsDataset"):
            dataset = p.op(f"{prefix}{op}", dataset, np.array(b"tag", object))
        graph = p.iterated(dataset)
        if threads >= 0:
            assert await all_of(graph) == [0, 1, 2]
        else:
            with pytest.raises(InvalidArgumentError, match="`num_threads` must be >= 0"):
                await all_of(graph)
