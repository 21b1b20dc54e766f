"""Kernels that turn axes around and rotate them: done twice, or there and back, they give the input."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, strategies as st

from partita.graph.dtypes import Array
from tests.devices.kernels.harness import check_shapes, run
from tests.devices.kernels.random_arrays import arrays, ints, same


@given(arrays(), st.data())
def test_reversing_twice_gives_the_input(x: Array, data: st.DataObject) -> None:
    flags = data.draw(st.lists(st.booleans(), min_size=x.ndim, max_size=x.ndim))
    axes = [i - data.draw(st.sampled_from([0, x.ndim])) for i, flag in enumerate(flags) if flag]
    turned = check_shapes("ReverseV2", x, ints(*axes))
    assert same(turned, np.flip(x, tuple(axes)))
    if x.shape[:1] != (0,):  # which Reverse, the older of the two, refuses
        assert same(check_shapes("Reverse", x, np.array(flags, np.bool_)), turned)
    assert same(run("ReverseV2", turned, ints(*axes)), x)


@given(arrays(least=1), st.data())
def test_rolling_there_and_back_gives_the_input(x: Array, data: st.DataObject) -> None:
    axes = data.draw(st.lists(st.integers(-x.ndim, x.ndim - 1), max_size=3))
    shifts = [data.draw(st.integers(-9, 9)) for _ in axes]
    there = check_shapes("Roll", x, ints(*shifts), ints(*axes))
    assert same(run("Roll", there, -ints(*shifts), ints(*axes)), x)


@given(arrays(least=2), st.data())
def test_reversing_whole_sequences_is_reversing_the_axis(x: Array, data: st.DataObject) -> None:
    batch, seq = data.draw(st.permutations(range(x.ndim)))[:2]
    attrs: dict[str, Any] = {"batch_dim": batch, "seq_dim": seq}
    whole = np.full(x.shape[batch], x.shape[seq], np.int64)
    assert same(check_shapes("ReverseSequence", x, whole, **attrs), np.flip(x, seq))
    lengths = np.array([data.draw(st.integers(0, x.shape[seq])) for _ in range(x.shape[batch])], np.int32)
    twice = run("ReverseSequence", run("ReverseSequence", x, lengths, **attrs), lengths, **attrs)
    assert same(twice, x)
