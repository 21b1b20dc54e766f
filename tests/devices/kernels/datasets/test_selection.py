"""A dataset has the elements of the list that it describes."""

from __future__ import annotations

from collections.abc import Callable
from itertools import takewhile

from hypothesis import given, settings, strategies as st

from partita.graph.builder.handles import Tensor
from tests.devices.kernels.datasets.pipelines import INT64, Pipeline, all_of

Stage = tuple[str, int]
Items = list[int]

# What each stage does to a dataset, and to a list.
DATASETS: dict[str, Callable[[Pipeline, Tensor, int], Tensor]] = {
    "take": lambda p, d, n: p.counted("TakeDataset", d, n),
    "skip": lambda p, d, n: p.counted("SkipDataset", d, n),
    "repeat": lambda p, d, n: p.counted("RepeatDataset", d, n),
    "shard": lambda p, d, n: p.counted("ShardDataset", d, n + 1, n),
    "concatenate": lambda p, d, n: p.op("ConcatenateDataset", d, p.range(n)),
    "prefetch": lambda p, d, n: p.counted("PrefetchDataset", d, n),
    "triple": lambda p, d, n: p.mapped("MapDataset", d, "triple"),
    "even": lambda p, d, n: p.mapped("FilterDataset", d, "is_even", attr="predicate"),
    "small": lambda p, d, n: p.mapped("TakeWhileDataset", d, "is_small", attr="predicate"),
    "unbatched": lambda p, d, n: p.op(
        "UnbatchDataset", p.op("BatchDataset", d, p.b.constant(n + 1, "int64"), shapes=[(None,)])
    ),
}
LISTS: dict[str, Callable[[Items, int], Items]] = {
    "take": lambda items, n: items[:n],
    "skip": lambda items, n: items[n:],
    "repeat": lambda items, n: items * n,
    "shard": lambda items, n: items[n :: n + 1],
    "concatenate": lambda items, n: [*items, *range(n)],
    "prefetch": lambda items, n: items,
    "triple": lambda items, n: [3 * item for item in items],
    "even": lambda items, n: [item for item in items if item % 2 == 0],
    "small": lambda items, n: list(takewhile(lambda item: item < 20, items)),
    "unbatched": lambda items, n: items,
}


@settings(max_examples=20)
@given(st.integers(0, 12), st.lists(st.tuples(st.sampled_from(sorted(LISTS)), st.integers(0, 4)), max_size=6))
async def test_a_pipeline_is_the_list_that_it_describes(stop: int, stages: list[Stage]) -> None:
    """Whatever the stages, in whatever order."""
    p = Pipeline()
    dataset, expected = p.range(stop), list(range(stop))
    for stage, number in stages:
        dataset, expected = DATASETS[stage](p, dataset, number), LISTS[stage](expected, number)
        expected = expected[:200]
        dataset = p.counted("TakeDataset", dataset, 200)
    assert await all_of(p.iterated(dataset)) == expected


async def test_negative_counts_mean_all() -> None:
    """Take gives everything, Skip nothing, Repeat has no end."""
    p = Pipeline()
    forever = p.counted("RepeatDataset", p.counted("TakeDataset", p.range(2), -1), -1)
    assert await all_of(p.iterated(p.counted("TakeDataset", forever, 5))) == [0, 1, 0, 1, 0]
    q = Pipeline()
    assert await all_of(q.iterated(q.counted("SkipDataset", q.range(2), -1))) == []


async def test_nothing_repeated_ends() -> None:
    """A repetition without end of no elements has no elements."""
    p = Pipeline()
    nothing = p.mapped("FilterDataset", p.counted("SkipDataset", p.range(3), 3), "is_even", attr="predicate")
    assert await all_of(p.iterated(p.counted("RepeatDataset", nothing, -1))) == []


async def test_zipped_elements_end_with_the_shortest() -> None:
    """The components of all sources, as long as each has an element."""
    p = Pipeline()
    zipped = p.op("ZipDataset", [p.range(5), p.range(3)], types=[INT64, INT64], shapes=[(), ()])
    added = p.mapped("MapDataset", zipped, "plus")
    assert await all_of(p.iterated(added)) == [0, 2, 4]
