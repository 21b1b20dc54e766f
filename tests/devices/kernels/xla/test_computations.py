"""Functions that take arrays are those whose ops all compute element by element."""

from __future__ import annotations

import numpy as np
import pytest

from partita.devices.kernels.xla.computations import UFUNCS, is_elementwise
from partita.errors import InvalidArgumentError
from partita.graph.dtypes import DataType
from partita.graph.ops.record import families
from partita.graph.ops.registry import lookup_op
from tests.devices.kernels.harness import shapes
from tests.devices.kernels.xla.computed import binary, run_with

ELEMENTWISE = [op for op in families()["elementwise"] if is_elementwise(op)]


@pytest.mark.parametrize("op", ELEMENTWISE)
def test_elementwise_ops_broadcast(op: str) -> None:
    """The outputs have the common shape of the inputs: so a scalar constant in a function does no harm."""
    signature = lookup_op(op)
    free = [name for name, attr in signature.attrs.items() if attr.type == "type" and name not in signature.defaults]
    scalars = [()] * (len(signature.input_args) - 1)
    inferred = shapes(op, (2, 3), *scalars, **dict.fromkeys(free, DataType.FLOAT))
    assert inferred == [(2, 3)] * len(signature.output_args)


def test_ufuncs_are_commutative_functions_of_two() -> None:
    """Reductions and scatters may then hand their arguments over in any order."""
    x, y = np.array([5, 3, 0]), np.array([3, 6, 1])
    for ufunc in set(UFUNCS.values()):
        assert ufunc.nin == 2
        np.testing.assert_array_equal(ufunc(x, y), ufunc(y, x))


async def test_a_function_must_have_the_types_of_the_node() -> None:
    """Else the node cannot be compiled."""
    with pytest.raises(
        InvalidArgumentError, match=r"reducer 'reducer' must be a function \(float, float\) -> \(float\)"
    ):
        await run_with(
            "XlaReduce", np.zeros(3, np.float32), np.float32(0), types=["int32", "int32"],
            reducer=binary("AddV2"), dimensions_to_reduce=[0],
        )  # fmt: skip
