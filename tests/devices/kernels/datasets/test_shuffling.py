"""Shuffles: permutations, repeatable, in TensorFlow's order for the same seeds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from partita.actors import open_session
from partita.errors import InvalidArgumentError
from partita.graph.builder.handles import Tensor
from tests.devices.kernels.datasets.pipelines import Pipeline, all_of, drained

GRAPH_SEED = 87654321  # TensorFlow's first seed where only an op has one


def shuffled(p: Pipeline, dataset: Tensor, size: int, seed: int = 7, *, reshuffles: bool = True) -> Tensor:
    seeds = np.int64(GRAPH_SEED), np.int64(seed)
    return p.op("ShuffleDataset", dataset, np.int64(size), *seeds, reshuffle_each_iteration=reshuffles)


@settings(max_examples=15)
@given(st.integers(0, 20), st.integers(1, 30), st.integers(1, 9), st.integers(1, 3))
async def test_a_shuffle_is_a_permutation(stop: int, size: int, seed: int, epochs: int) -> None:
    """Of each epoch, whatever the buffer; no element comes earlier than the buffer allows."""
    p = Pipeline()
    dataset = p.counted("RepeatDataset", shuffled(p, p.range(stop), size, seed), epochs)
    elements = await all_of(p.iterated(dataset))
    for epoch in range(epochs):
        part = elements[stop * epoch : stop * (epoch + 1)]
        assert sorted(part) == list(range(stop))
        assert all(number < place + size for place, number in enumerate(part))


async def test_shuffles_have_tensorflows_order() -> None:
    """TensorFlow 2.21 gives range(6).shuffle(size, seed=7).repeat(3) so."""
    for size, expected in (
        (100, [4, 0, 2, 3, 5, 1, 1, 4, 3, 2, 0, 5, 1, 0, 4, 3, 2, 5]),
        (3, [1, 2, 0, 3, 5, 4, 1, 0, 3, 2, 4, 5, 1, 3, 0, 2, 4, 5]),
        (-2, [4, 0, 2, 3, 5, 1, 1, 4, 3, 2, 0, 5, 1, 0, 4, 3, 2, 5]),
    ):
        p = Pipeline()
        assert await all_of(p.iterated(p.counted("RepeatDataset", shuffled(p, p.range(6), size), 3))) == expected


async def test_without_reshuffling_all_epochs_are_alike() -> None:
    """Each has the order that the seeds give."""
    p = Pipeline()
    dataset = p.counted("RepeatDataset", shuffled(p, p.range(9), 4, reshuffles=False), 2)
    elements = await all_of(p.iterated(dataset))
    assert elements[:9] == elements[9:]


async def test_a_shuffle_that_repeats_mixes_no_epochs() -> None:
    """TensorFlow 2.21 gives range(6) with a buffer of three, for three epochs, so."""
    p = Pipeline()
    numbers = [np.int64(n) for n in (3, GRAPH_SEED, 7, 3)]
    dataset = p.op("ShuffleAndRepeatDataset", p.range(6), *numbers, reshuffle_each_iteration=True)
    expected = [1, 2, 0, 3, 5, 4, 1, 0, 3, 2, 4, 5, 1, 3, 0, 2, 4, 5]
    assert await all_of(p.iterated(dataset)) == expected


async def test_a_generator_of_seeds_is_shared() -> None:
    """Two shuffles with one generator, taken in turn, have the orders of two epochs."""
    p = Pipeline()
    seeds = np.int64(GRAPH_SEED), np.int64(7)
    handle = p.b.op("AnonymousSeedGenerator", *seeds, np.bool_(True))[0]
    one, other = (p.op("ShuffleDatasetV2", p.range(6), np.int64(100), handle) for _ in range(2))
    assert await all_of(p.iterated(p.op("ConcatenateDataset", one, other))) == [4, 0, 2, 3, 5, 1, 1, 4, 3, 2, 0, 5]


async def test_without_seeds_a_session_with_a_seed_repeats_itself() -> None:
    """The device draws the seeds; those of another session differ."""

    async def elements(seed: int) -> list[int]:
        p = Pipeline()
        zero = np.int64(0)
        dataset = p.op("ShuffleDataset", p.range(50), np.int64(50), zero, zero, reshuffle_each_iteration=True)
        async with open_session(p.iterated(dataset), "cpu:1", seed=seed) as session:
            await session.run([], targets=["init"])
            return await drained(session)

    assert await elements(1) == await elements(1) != await elements(2)


async def test_random_numbers_are_tensorflows() -> None:
    """TensorFlow 2.21 gives RandomDataset(seed=4) so; the same in every epoch."""
    p = Pipeline()
    numbers = p.op("RandomDataset", np.int64(GRAPH_SEED), np.int64(4))
    dataset = p.counted("RepeatDataset", p.counted("TakeDataset", numbers, 3), 2)
    assert await all_of(p.iterated(dataset)) == [3128586565, 2023892699, 452966358] * 2


async def test_an_empty_buffer_is_refused() -> None:
    """The message is TensorFlow's."""
    p = Pipeline()
    with pytest.raises(InvalidArgumentError, match="buffer_size must be greater than zero or UNKNOWN_CARDINALITY"):
        await all_of(p.iterated(shuffled(p, p.range(3), 0)))
