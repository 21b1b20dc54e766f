"""Summaries have TensorFlow's bytes."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.errors import InvalidArgumentError
from partita.graph.dtypes import Array
from partita.graph.protos import HistogramProto, Summary
from tests.devices.kernels.harness import run
from tests.devices.kernels.random_arrays import texts

GREATEST = float(np.finfo(np.float64).max)


def text(data: bytes) -> Array:
    return np.array(data, object)


def histogram(values: Array) -> HistogramProto:
    data = run("HistogramSummary", text(b"h"), values, name="h").item()
    (value,) = Summary.FromString(data).value
    return value.histo


@given(st.lists(st.floats(-1e19, 1e19, allow_subnormal=False), max_size=50))
def test_a_histogram_counts_every_value_once(values: list[float]) -> None:
    """Limits ascend, no two neighbouring buckets are empty, and each bucket has the values below its limit."""
    histo = histogram(np.array(values, np.float64))
    limits, counts = list(histo.bucket_limit), list(histo.bucket)
    assert sum(counts) == histo.num == len(values)
    assert limits == sorted(limits)
    assert limits[-1] == GREATEST
    assert all(a or b for a, b in pairwise(counts))
    for limit, below in zip(limits, np.cumsum(counts), strict=True):
        assert sum(value < limit for value in values) == below
    assert math.isclose(histo.sum, math.fsum(values), abs_tol=1e-12 * sum(map(abs, values)))


def test_a_histogram_of_few_values() -> None:
    """TensorFlow 2.21 gives these limits and sums, and these ends for no values."""
    histo = histogram(np.array([1, 2, 3], np.float64))
    assert list(histo.bucket_limit) == [
        *(0.917246389039776, 1.0089710279437536, 1.9661990955585713, 2.1628190051144287),
        *(2.8787120958073054, 3.1665833053880363, GREATEST),
    ]
    assert list(histo.bucket) == [0, 1, 0, 1, 0, 1, 0]
    assert (histo.min, histo.max, histo.sum, histo.sum_squares) == (1, 3, 6, 14)
    empty = histogram(np.zeros(0, np.float32))
    assert (empty.min, empty.max, list(empty.bucket_limit), list(empty.bucket)) == (
        GREATEST,
        -GREATEST,
        [GREATEST],
        [0],
    )


def test_sums_round_as_one_addition_after_the_other() -> None:
    """TensorFlow 2.21 gives this sum of squares."""
    assert histogram(np.array([-1, 1e-13, 1e25, -1e25])).sum_squares == 2.0000000000000006e50


@pytest.mark.parametrize(
    ("value", "message"),
    [(math.nan, "Nan in summary histogram for: n"), (math.inf, "Infinity in Histogram for: n")],
)
def test_a_histogram_has_finite_values(value: float, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        run("HistogramSummary", text(b"h"), np.array([1, value], np.float16), name="n")
    with pytest.raises(InvalidArgumentError, match="tags must be scalar"):
        run("HistogramSummary", texts(b"h"), np.ones(1, np.float32))


def test_scalars() -> None:
    """TensorFlow 2.21 gives these bytes; doubles become floats."""
    assert run("ScalarSummary", text(b"a"), np.float32(1.5)).item() == b"\n\x08\n\x01a\x15\x00\x00\xc0?"
    assert run("ScalarSummary", text(b"a"), np.float64(1e300)).item() == b"\n\x08\n\x01a\x15\x00\x00\x80\x7f"
    two = run("ScalarSummary", texts(b"a", b"b"), np.array([1, 2**31 - 1], np.int32)).item()
    assert two == b"\n\x08\n\x01a\x15\x00\x00\x80?\n\x08\n\x01b\x15\x00\x00\x00O"


@pytest.mark.parametrize(
    ("tags", "values", "message"),
    [
        (texts(b"a", b"b"), np.ones((1, 2)), r"tags and values are not the same shape: \[2\] != \[1,2\]$"),
        (text(b"a"), np.ones(1), r"tags and values are not the same shape: \[\] != \[1\] \(tag 'a'\)"),
        (text(b"\xff"), np.float32(1), "is not UTF-8"),
    ],
)
def test_wrong_tags(tags: Array, values: Array, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        run("ScalarSummary", tags, values)


def test_merging_keeps_the_order_and_refuses_a_tag_twice() -> None:
    """Values without a tag, as TensorSummary makes them, never clash."""
    a, b = (run("ScalarSummary", text(tag), np.float32(1)) for tag in (b"a", b"b"))
    tensor = run("TensorSummary", np.array([1, 2], np.int32), name="node")
    merged = run("MergeSummary", [texts(b.item(), a.item()), tensor, tensor]).item()
    assert [(value.tag, value.node_name) for value in Summary.FromString(merged).value] == [
        ("b", ""),
        ("a", ""),
        ("", "node"),
        ("", "node"),
    ]
    with pytest.raises(InvalidArgumentError, match="Duplicate tag a found in summary inputs"):
        run("MergeSummary", [a, b, a])
    with pytest.raises(InvalidArgumentError, match="Could not parse one of the summary inputs"):
        run("MergeSummary", [text(b"\n\xff")])


def test_tensors() -> None:
    """TensorFlow 2.21 gives these bytes; empty metadata is there all the same."""
    values = np.array([1, 2], np.float32)
    content = b'B\x12\x08\x01\x12\x04\x12\x02\x08\x02"\x08\x00\x00\x80?\x00\x00\x00@'
    assert run("TensorSummary", values, name="nodename").item() == b"\n\x1e:\x08nodename" + content
    metadata = b"\n\x06\n\x01p\x12\x01q\x12\x01x"
    assert (
        run("TensorSummaryV2", text(b"t"), values, text(metadata)).item()
        == b"\n$\n\x01t" + content + b"J\x0b" + metadata
    )
    assert run("TensorSummaryV2", text(b"t"), values, text(b"")).item() == b"\n\x19\n\x01t" + content + b"J\x00"
    with pytest.raises(InvalidArgumentError, match="no serialised SummaryMetadata"):
        run("TensorSummaryV2", text(b"t"), values, text(b"\n\xff"))
