"""Tensor arrays and stacks of the first versions do what the later ones do; their handles are strings."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from partita.devices.state import Variable
from partita.errors import InvalidArgumentError, NotFoundError
from partita.graph.dtypes import DataType
from tests.devices.kernels.harness import run, shapes
from tests.devices.kernels.lists.list_tensors import FLOAT, ROWS
from tests.devices.kernels.random_arrays import texts

FLOW = np.float32(0)
VERSIONS = pytest.mark.parametrize("version", ["", "V2", "V3"])


def array(version: str, size: int = 3, **attrs: Any) -> Any:  # Any: a tensor, or a reference
    made = run(f"TensorArray{version}", np.int32(size), dtype=FLOAT, tensor_array_name="a", **attrs)
    return made[0] if version == "V3" else made


@VERSIONS
def test_all_versions_keep_the_same(version: str) -> None:
    """One element, several, and pieces of different lengths."""
    handle = array(version, clear_after_read=False)
    run(f"TensorArrayWrite{version}", handle, np.int32(0), ROWS[0], FLOW)
    run(f"TensorArrayScatter{version}", handle, np.array([2, 1], np.int32), ROWS[:2], FLOW)
    read = run(f"TensorArrayRead{version}", handle, np.int32(2), FLOW, dtype=FLOAT)
    np.testing.assert_array_equal(read, ROWS[0])
    gathered = run(f"TensorArrayGather{version}", handle, np.array([1, 0], np.int32), FLOW, dtype=FLOAT)
    np.testing.assert_array_equal(gathered, ROWS[[1, 0]])
    assert run(f"TensorArraySize{version}", handle, FLOW) == 3
    pieces = array(version)
    run(f"TensorArraySplit{version}", pieces, ROWS, np.array([2, 0, 1]), FLOW)
    joined, lengths = run(f"TensorArrayConcat{version}", pieces, FLOW, dtype=FLOAT)
    np.testing.assert_array_equal(joined, ROWS)
    np.testing.assert_array_equal(lengths, [2, 0, 1])
    run(f"TensorArrayClose{version}", pieces)
    with pytest.raises(InvalidArgumentError, match="TensorArray a has already been closed"):
        run(f"TensorArraySize{version}", pieces, FLOW)


@VERSIONS
def test_gradient_arrays_add_up(version: str) -> None:
    """Asked for twice, it is the same one."""
    handle = array(version)
    forward = handle.read() if isinstance(handle, Variable) else handle
    for _ in range(2):
        made = run(f"TensorArrayGrad{version}", forward, FLOW, source="g")
        gradient = made[0] if version == "V3" else made
        run(f"TensorArrayWrite{version}", gradient, np.int32(1), ROWS[0], FLOW)
    total = run(f"TensorArrayRead{version}", gradient, np.int32(1), FLOW, dtype=FLOAT)
    np.testing.assert_array_equal(total, 2 * ROWS[0])


def test_packing_takes_all_elements_in_order() -> None:
    """TensorFlow 2.21 has these words."""
    handle = array("")
    run("TensorArrayUnpack", handle, ROWS, FLOW)
    np.testing.assert_array_equal(run("TensorArrayPack", handle, FLOW, dtype=FLOAT), ROWS)
    with pytest.raises(InvalidArgumentError, match=r"first dimension equal to the array size \(2 vs. 3\)"):
        run("TensorArrayUnpack", array(""), ROWS[:2], FLOW)
    with pytest.raises(InvalidArgumentError, match=r"must be at least a vector but received shape: \[\]"):
        run("TensorArrayUnpack", handle, np.float32(1), FLOW)
    assert run("TensorArrayPack", array("", 0), FLOW, dtype=FLOAT, element_shape=(3,)).shape == (0, 3)


def test_handles_are_two_strings() -> None:
    """A container and the name; strings that carry nothing are refused."""
    assert array("V2").tolist() == [b"_tensor_arrays", b"a"]
    assert array("").read().tolist() == [b"_tensor_arrays", b"a"]
    for strings, error in ((texts(b"a", b"b"), NotFoundError), (texts(b"a", b"b", b"c"), InvalidArgumentError)):
        with pytest.raises(error):
            run("TensorArraySizeV2", strings, FLOW)


def test_a_stack_of_the_first_version_has_no_limit() -> None:
    """Last in, first out."""
    stack = run("Stack", elem_type=FLOAT, stack_name="s")
    assert stack.read().tolist() == [b"_stacks", b"s"]
    for row in ROWS:
        run("StackPush", stack, row)
    for row in ROWS[::-1]:
        np.testing.assert_array_equal(run("StackPop", stack, elem_type=FLOAT), row)
    with pytest.raises(InvalidArgumentError, match=r"Stack\[s\] is empty"):
        run("StackPop", stack, elem_type=FLOAT)
    run("StackClose", stack)


def test_shapes() -> None:
    """Of the first tensor arrays nothing is inferred, as in TensorFlow; the second have handles of two."""
    nothing: list[Any] = [None]
    assert shapes("TensorArrayRead", None, (2,), None, dtype=DataType.FLOAT) == nothing
    assert shapes("TensorArrayPack", None, None, dtype=DataType.FLOAT, element_shape=(2,)) == nothing
    assert shapes("TensorArrayV2", (), dtype=DataType.FLOAT) == [(2,)]
    assert shapes("TensorArrayWriteV2", (2,), (), None, ()) == [()]
    assert shapes("TensorArrayGatherV2", (2,), (4,), (), dtype=DataType.FLOAT) == nothing
    with pytest.raises(InvalidArgumentError, match="Dimensions must be equal, but are 3 and 2"):
        shapes("TensorArraySizeV2", (3,), ())
    with pytest.raises(InvalidArgumentError, match="Shape must be rank 1"):
        shapes("TensorArraySplitV3", (2,), None, (3, 3), ())
