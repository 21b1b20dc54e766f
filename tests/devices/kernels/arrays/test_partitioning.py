"""Kernels that deal slices out to several tensors and stitch them together."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.errors import InvalidArgumentError
from partita.graph.dtypes import Array
from tests.devices.kernels.harness import check_shapes, run
from tests.devices.kernels.random_arrays import arrays, filled, ints, same, texts

X = np.arange(6, dtype=np.float32).reshape(2, 3)


@given(arrays(least=1), st.data())
def test_stitching_a_partition_gives_the_input_back(x: Array, data: st.DataObject) -> None:
    rank = data.draw(st.integers(1, x.ndim))
    marks = filled(x.shape[:rank], np.int32, data.draw(st.integers(0, 9))) % 3
    parts = check_shapes("DynamicPartition", x, marks, num_partitions=3)
    places = check_shapes(
        "DynamicPartition", np.arange(marks.size, dtype=np.int32).reshape(marks.shape), marks, num_partitions=3
    )
    for op in ("DynamicStitch", "ParallelDynamicStitch"):
        whole = check_shapes(op, list(places), list(parts))
        assert same(whole, x.reshape(marks.size, *x.shape[rank:]))


def test_stitching_lets_the_last_win_and_fills_gaps_with_zeros() -> None:
    actual = run("DynamicStitch", [ints(0, 3), np.int32(0)], [X, X[1]])
    assert actual.tolist() == [[3, 4, 5], [0, 0, 0], [0, 0, 0], [3, 4, 5]]
    assert run("DynamicStitch", [ints(1)], [texts(b"a")]).tolist() == [b"", b"a"]


@pytest.mark.parametrize(
    ("call", "attrs", "message"),
    [
        (("DynamicPartition", X, ints(1, 2)), {"num_partitions": 2}, "partitions[1] = 2 is not in [0, 2)"),
        (
            ("DynamicPartition", X, ints(1)),
            {"num_partitions": 2},
            "data.shape must start with partitions.shape, got data.shape = [2,3], partitions.shape = [1]",
        ),
        (("DynamicStitch", [ints(0, -1)], [X]), {}, "indices[1] is out of range"),
        (
            ("DynamicStitch", [ints(0, 1)], [X[:1]]),
            {},
            "data[0].shape = [1,3] does not start with indices[0].shape = [2]",
        ),
    ],
)
def test_bad_destinations_are_refused(call: Any, attrs: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        run(*call, **attrs)
    assert caught.value.message == message
