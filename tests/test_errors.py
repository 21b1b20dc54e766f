"""An error keeps the place where it happened, and the calls that led there."""

from __future__ import annotations

from partita.errors import InvalidArgumentError


def test_the_first_place_counts() -> None:
    error = InvalidArgumentError("bad").located(node="inner", op="Neg").located(node="outer", op="While", step=3)
    assert (error.node, error.op, error.step, error.function, error.calls) == ("inner", "Neg", 3, None, None)
    assert str(error) == "bad [node 'inner', op 'Neg', step 3]"


def test_an_error_that_leaves_a_function_is_told_who_called() -> None:
    """Outermost call first; `function` is the innermost; the other parts of the place are those of the node."""
    error = InvalidArgumentError("bad").located(node="check", op="CheckNumerics", device="d")
    error.inside("g").located(step=1).located(node="middle", op="PartitionedCall")
    error.inside("f").located(node="y", op="StatefulPartitionedCall").located(node="again")
    assert (error.node, error.op, error.function, error.calls) == ("check", "CheckNumerics", "g", ("y", "middle"))
    assert str(error) == (
        "bad [node 'check', op 'CheckNumerics', function 'g', calls 'y' 'middle', device 'd', step 1]"
    )


def test_an_error_without_a_node_inside_is_located_at_the_call() -> None:
    error = InvalidArgumentError("bad").inside("f").located(node="y", op="PartitionedCall")
    assert (error.node, error.function, error.calls) == (None, "f", ("y",))
    assert str(error) == "bad [function 'f', calls 'y']"
