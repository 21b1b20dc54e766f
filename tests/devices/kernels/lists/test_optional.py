"""Optional values."""

from __future__ import annotations

import numpy as np
import pytest

from partita.errors import InvalidArgumentError
from tests.devices.kernels.harness import run
from tests.devices.kernels.lists.list_tensors import FLOAT, INT32, ROWS


def test_optionals_give_back_what_they_are_made_of() -> None:
    """In number, type and shape as promised."""
    optional = run("OptionalFromValue", [np.float32(1), ROWS])
    assert run("OptionalHasValue", optional)
    assert not run("OptionalHasValue", run("OptionalNone"))
    values = run("OptionalGetValue", optional, output_types=[FLOAT, FLOAT], output_shapes=[(), (None, 2)])
    np.testing.assert_array_equal(values[1], ROWS)
    for value, types, shapes, message in (
        (run("OptionalNone"), [FLOAT], [()], "does not have a value"),
        (optional, [FLOAT], [()], "has 2 components, expected 1"),
        (optional, [INT32, FLOAT], [(), None], "expected type for component 0. Expected: int32. Actual: float"),
        (optional, [FLOAT, FLOAT], [(), (2,)], r"expected shape for component 1. Expected: \[2\]. Actual: \[3,2\]"),
    ):
        with pytest.raises(InvalidArgumentError, match=message):
            run("OptionalGetValue", value, output_types=types, output_shapes=shapes)
