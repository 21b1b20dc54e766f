"""Tables of the first version do what the second does; their handles are references to two strings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from partita.devices.state import DeviceState, Variable
from partita.errors import FailedPreconditionError, InvalidArgumentError
from partita.graph.dtypes import Array, DataType
from tests.devices.kernels.harness import run, shapes
from tests.devices.kernels.random_arrays import texts

STRING, INT64, FLOAT = DataType.STRING, DataType.INT64, DataType.FLOAT
KEYS = texts(b"a", b"x", b"b")


class FirstTable:
    """A table on a device of its own."""

    def __init__(self, op: str, values: DataType = FLOAT, **attrs: Any) -> None:
        self.state = DeviceState()
        types = {"key_dtype": STRING, "value_dtype": values}
        self.handle: Variable = run(op, state=self.state, name="t", **types, **attrs)

    def __call__(self, op: str, *inputs: Any, **attrs: Any) -> Any:
        return run(op, self.handle, *inputs, state=self.state, **attrs)

    def found(self, default: Any) -> Array:
        values: Array = self("LookupTableFind", KEYS, default)
        return values


def test_a_table_that_is_filled_once() -> None:
    """It cannot be read before; the handle names container and table."""
    table = FirstTable("HashTable", INT64, shared_name="shared")
    assert table.handle.read().tolist() == [b"localhost", b"shared"]
    with pytest.raises(FailedPreconditionError, match="not initialized"):
        table.found(np.int64(-1))
    table("InitializeTable", texts(b"a", b"b"), np.array([10, 20]))
    np.testing.assert_array_equal(table.found(np.int64(-1)), [10, -1, 20])
    assert table("LookupTableSize") == 2
    keys, values = table("LookupTableExport", Tkeys=STRING, Tvalues=INT64)
    assert dict(zip(keys.tolist(), values.tolist(), strict=True)) == {b"a": 10, b"b": 20}


def test_a_table_from_a_file(tmp_path: Path) -> None:
    """A line per entry."""
    (tmp_path / "vocabulary").write_text("a\t1\nb\t2\n")
    table = FirstTable("HashTable", INT64)
    path = np.array(str(tmp_path / "vocabulary").encode(), object)
    table("InitializeTableFromTextFile", path, key_index=0, value_index=1)
    np.testing.assert_array_equal(table.found(np.int64(-1)), [1, -1, 2])


def test_a_table_that_changes() -> None:
    """Keys are added; an import replaces all."""
    table = FirstTable("MutableHashTable")
    table("LookupTableInsert", texts(b"a", b"b"), np.array([1, 2], np.float32))
    np.testing.assert_array_equal(table.found(np.float32(-1)), [1, -1, 2])
    table("LookupTableImport", texts(b"x"), np.array([5], np.float32))
    np.testing.assert_array_equal(table.found(np.float32(-1)), [-1, 5, -1])
    with pytest.raises(InvalidArgumentError, match="Table localhost _0_t is not initializable"):
        table("InitializeTable", texts(b"a"), np.array([1], np.float32))


def test_values_may_be_tensors() -> None:
    """Of one shape."""
    table = FirstTable("MutableHashTableOfTensors", value_shape=(2,))
    table("LookupTableInsert", texts(b"a"), np.array([[1, 2]], np.float32))
    np.testing.assert_array_equal(table.found(np.zeros(2, np.float32)), [[1, 2], [0, 0], [0, 0]])


def test_refusals() -> None:
    """In TensorFlow 2.21's words; it never makes a dense table of the first version."""
    table = FirstTable("HashTable", INT64)
    with pytest.raises(
        InvalidArgumentError, match="have: string_ref, int64, int64->int64 expected: string_ref, string,"
    ):
        table("LookupTableFind", np.array([1]), np.int64(0))
    with pytest.raises(InvalidArgumentError, match="Unknown input name: deleted_key"):
        run("MutableDenseHashTable", np.int64(1), value_dtype=FLOAT)


def test_shapes() -> None:
    """Handles are vectors of two."""
    assert shapes("HashTable", key_dtype=STRING, value_dtype=FLOAT) == [(2,)]
    assert shapes("LookupTableSize", (2,)) == [()]
    assert shapes("LookupTableExport", None, Tkeys=STRING, Tvalues=FLOAT) == [(None,), None]
    with pytest.raises(InvalidArgumentError, match="Dimensions must be equal, but are 3 and 2"):
        shapes("LookupTableFind", (3,), None, None)
    with pytest.raises(InvalidArgumentError, match="Dimension 0 in both shapes must be equal, but are 2 and 3"):
        shapes("InitializeTable", (2,), (2,), (3,))
