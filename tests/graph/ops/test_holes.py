"""The ops of which something is missing: the list only ever gets shorter.

A hole is an op that has a kernel, a shape function or a gradient of its own, or a cost, but not all of the first
three. An op that nothing flows back through needs no gradient, one that the executor carries out itself no kernel.
"""

from __future__ import annotations

from pathlib import Path

from partita.actors.plans.roles import Role, role_of
from partita.devices.kernels import op_cost
from partita.devices.kernels import registry as kernels
from partita.graph.analysis import gradient_rules as gradients
from partita.graph.analysis import shape_functions as shapes
from partita.graph.ops.record import families, record_of

GOLDEN = Path(__file__).parent / "holes.txt"


def needs_no_kernel(op: str) -> bool:
    """Whether the executor carries the op out itself."""
    record = record_of(op)
    return role_of(op) is not Role.COMPUTE or record.calls is not None or record.must_be_fed


def holes() -> list[str]:
    """ "Op: what is missing", sorted."""
    found = []
    for op in sorted(op for ops in families().values() for op in ops):
        kernel = op in kernels.table()
        shape, gradient = op in shapes.table(), op in gradients.table()
        costs = any(op in table for table in op_cost.tables().values())
        has = {"kernel": kernel or needs_no_kernel(op), "shape": shape, "gradient": gradients.is_registered(op)}
        if (kernel or shape or gradient or costs) and not all(has.values()):
            found.append(f"{op}: {', '.join(what for what, there in has.items() if not there)}")
    return found


def test_the_holes_are_the_known_ones() -> None:
    """A new op is whole; one that becomes whole leaves the list (write `holes()` to it)."""
    assert holes() == GOLDEN.read_text().splitlines()


def test_sums_of_many_are_whole() -> None:
    """AccumulateNV2 once had a gradient and a cost, but neither kernel nor shape function."""
    assert not [line for line in holes() if line.startswith(("AddN:", "AccumulateNV2:"))]
