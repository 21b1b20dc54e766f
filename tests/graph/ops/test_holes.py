"""Lists the ops that lack a kernel, a shape function or a gradient; the list must not grow.

A hole is an op that has a kernel, a shape function, a gradient or a cost, but not all of the first three. An op that is
not differentiable needs no gradient. One that the executor runs without a kernel needs none, nor one for the clock.
"""

from __future__ import annotations

from pathlib import Path

from partita.actors.plans.roles import Role, role_of
from partita.devices.kernels import op_cost, registry as kernels
from partita.graph.analysis import gradient_rules as gradients, shape_functions as shapes
from partita.graph.ops.record import families, record_of

GOLDEN = Path(__file__).parent / "holes.txt"


def needs_no_kernel(op: str) -> bool:
    """Whether the executor runs the op without a kernel, or never."""
    record = record_of(op)
    is_run = role_of(op) is Role.COMPUTE and record.calls is None
    return not is_run or record.must_be_fed or bool(record.clock_only)


def holes() -> list[str]:
    """ "Op: what is missing", sorted."""
    lines = []
    for op in sorted(op for ops in families().values() for op in ops):
        kernel = op in kernels.table()
        shape, gradient = op in shapes.table(), op in gradients.table()
        costs = any(op in table for table in op_cost.tables().values())
        has = {"kernel": kernel or needs_no_kernel(op), "shape": shape, "gradient": gradients.is_registered(op)}
        if (kernel or shape or gradient or costs) and not all(has.values()):
            lines.append(f"{op}: {', '.join(what for what, exists in has.items() if not exists)}")
    return lines


def test_the_holes_are_the_known_ones() -> None:
    """A new op must be complete. When a listed op becomes complete, write `holes()` to the file."""
    assert holes() == GOLDEN.read_text().splitlines()


def test_sums_of_many_tensors_are_complete() -> None:
    """AccumulateNV2 once had a gradient and a cost, but neither kernel nor shape function."""
    assert not [line for line in holes() if line.startswith(("AddN:", "AccumulateNV2:"))]
