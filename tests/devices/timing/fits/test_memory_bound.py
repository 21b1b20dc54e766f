"""Memory-bound ops: laws of the formula, the file's table, and what is assumed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.devices.timing.fits.memory_bound import (
    MemoryBoundModel,
    MemoryNumbers,
    assumed_memory_bound,
    kind_of,
)
from partita.errors import InvalidArgumentError

B200 = MemoryBoundModel(
    {
        "default": MemoryNumbers(8 * 10**12, 0.666, 30_000, 0.2),
        "cross_entropy": MemoryNumbers(8 * 10**12, 0.32461, 30_000, 0.2),
    },
    "SimuMax 4dcaae5, memory_bound_b200.csv",
    "2026-11-23",
)


@given(st.integers(0, 10**12), st.integers(0, 10**12))
def test_more_bytes_take_longer(first: int, second: int) -> None:
    """In the order of the bytes, inside the interval."""
    said = B200.predict(np.array(sorted([first, second])))
    assert said.time_ns[0] <= said.time_ns[1]
    assert (said.low_ns <= said.time_ns).all()
    assert (said.time_ns <= said.high_ns).all()


def test_formula() -> None:
    """Bytes at the bandwidth reached, and the constant; the longer of it and the arithmetic."""
    assert B200.predict(np.array([5_328_000])).time_ns[0] == pytest.approx(31_000)
    assert B200.predict(np.array([5_328_000]), arithmetic_ns=5000.0).time_ns[0] == pytest.approx(35_000)
    assert B200.predict(np.array([10**9]), "cross_entropy").time_ns[0] > B200.predict(np.array([10**9])).time_ns[0]
    assert B200.numbers("permute") == B200.numbers()


def test_table_and_back() -> None:
    """What was written is read."""
    again = MemoryBoundModel.from_table(B200.to_table(), "here")
    assert (again.kinds, again.source, again.date) == (B200.kinds, B200.source, B200.date)


def test_wrong_tables() -> None:
    """The place and the key are named."""
    table = B200.to_table()
    with pytest.raises(InvalidArgumentError, match=r"here: unknown kind 'defualt'.*'default'"):
        MemoryBoundModel.from_table({"defualt": table["default"]}, "here")
    with pytest.raises(InvalidArgumentError, match=r"here: .*no kind 'default'"):
        MemoryBoundModel.from_table({"cross_entropy": table["cross_entropy"]}, "here")
    with pytest.raises(InvalidArgumentError, match=r"here.default: 'constant' is missing"):
        MemoryBoundModel.from_table({"default": {k: v for k, v in table["default"].items() if k != "constant"}}, "here")
    wrong = {**table["default"], "efficiency": {"value": "66 %/s", "source": "", "date": ""}}
    with pytest.raises(InvalidArgumentError, match=r"here.default: efficiency: '66 %/s'"):
        MemoryBoundModel.from_table({"default": wrong}, "here")


def test_what_is_assumed() -> None:
    """80 % of the bandwidth and 3 us, and the provenance says so."""
    said = assumed_memory_bound(10**12).predict(np.array([8 * 10**8]))
    assert said.time_ns[0] == pytest.approx(1_003_000)
    assert said.provenance == "assumed"


def test_kinds_of_ops() -> None:
    """Most ops are of the default kind."""
    assert [kind_of(op) for op in ("Relu", "Transpose", "SoftmaxCrossEntropyWithLogits")] == [
        "default",
        "permute",
        "cross_entropy",
    ]
