"""Every op with a kernel states what it costs, or is in the list of those whose cost is guessed."""

from __future__ import annotations

from pathlib import Path

import pytest

from partita.devices.kernels import op_cost, registry as kernels
from partita.errors import InvalidArgumentError
from partita.graph.ops.record import OpRecord, record_of

GOLDEN = Path(__file__).parent / "guessed_costs.txt"


def test_guessed_costs_are_the_known_ones() -> None:
    """A new op must state its cost. The list may only shrink: when a listed op states one, take it out of the file."""
    ops = kernels.registered_ops()
    assert len(ops) >= 1186
    guessed = sorted(op for op in ops if not op_cost.is_stated(op))
    assert guessed == GOLDEN.read_text().splitlines()


def test_an_op_has_a_time_of_the_host_or_counts() -> None:
    """Not both, and what it waits for comes on top of either."""
    on_host = [op for op in kernels.registered_ops() if op_cost.is_on_host(op)]
    assert len(on_host) > 100
    for op in on_host:
        assert not op_cost.has_formula(op), op
        assert not op_cost.is_free(op), op


def test_an_unknown_op_is_guessed() -> None:
    """One that its record calls elementwise is not."""
    assert not op_cost.is_stated("NobodyRegisteredThis")
    assert record_of("Neg") != OpRecord("Neg")
    assert op_cost.is_stated("Neg")


@pytest.mark.parametrize("time_ns", [-1, 1.5, True])
def test_a_time_of_the_host_is_a_whole_number(time_ns: int) -> None:
    """It is refused where it is registered."""
    with pytest.raises(InvalidArgumentError, match="must be a whole number from 0 on"):
        op_cost.takes_host_time(time_ns, "NobodyRegisteredThis")
