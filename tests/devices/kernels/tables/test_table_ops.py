"""Look-up tables answer like dictionaries, and refuse what TensorFlow refuses in its words."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.devices.state import DeviceState
from partita.errors import (
    AbortedError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    OutOfRangeError,
    PartitaError,
    UnimplementedError,
)
from partita.graph.dtypes import Array, DataType
from tests.devices.kernels.harness import construct, run, shapes

INT64, STRING, FLOAT = DataType.INT64, DataType.STRING, DataType.FLOAT


def ints(*items: int) -> Array:
    """A vector of int64."""
    return np.array(items, np.int64)


def texts(*items: str) -> Array:
    """A vector of strings."""
    result = np.empty(len(items), object)
    result[:] = [item.encode() for item in items]
    return result


def text(item: object) -> Array:
    """A scalar string."""
    return texts(str(item)).reshape(())


class Session:
    """A device with one table."""

    def __init__(
        self, op: str = "HashTableV2", keys: DataType = STRING, values: DataType = INT64, **attrs: Any
    ) -> None:
        self.state = DeviceState(seed=0)
        self.types = keys, values
        self.handle = run(op, state=self.state, key_dtype=keys, value_dtype=values, **attrs)

    def __call__(self, op: str, *inputs: Any, **attrs: Any) -> Any:
        return run(op, self.handle, *inputs, state=self.state, **attrs)

    def find(self, keys: Array, default: Any = -1) -> Any:
        return self("LookupTableFindV2", keys, np.asarray(default, np.int64)).tolist()

    def export(self) -> tuple[list[Any], list[Any]]:
        keys, values = self("LookupTableExportV2", Tkeys=self.types[0], Tvalues=self.types[1])
        return keys.tolist(), values.tolist()


def filled() -> Session:
    """A table that has been filled, with a: 1 and b: 2."""
    session = Session()
    session("InitializeTableV2", texts("a", "b"), ints(1, 2))
    return session


KEYS = st.lists(st.integers(-3, 3), max_size=6)
STEPS = st.lists(st.tuples(st.sampled_from(["Insert", "Remove", "Import"]), KEYS), max_size=8)


@given(STEPS, KEYS)
def test_a_mutable_table_is_a_dictionary(steps: list[tuple[str, list[int]]], asked: list[int]) -> None:
    """After any sequence of updates the table equals a Python dict."""
    table, expected = Session("MutableHashTableV2", INT64), dict[int, int]()
    for number, (step, keys) in enumerate(steps):
        values = [100 * number + at for at in range(len(keys))]
        expected = {} if step == "Import" else expected
        if step == "Remove":
            table("LookupTableRemoveV2", ints(*keys))
            expected = {key: value for key, value in expected.items() if key not in keys}
        else:
            table(f"LookupTable{step}V2", ints(*keys), ints(*values))
            expected.update(zip(keys, values, strict=True))
    assert table.find(ints(*asked)) == [expected.get(key, -1) for key in asked]
    assert table("LookupTableSizeV2") == len(expected)
    keys, values = table.export()
    assert dict(zip(keys, values, strict=True)) == expected


def test_keys_of_any_shape_are_looked_up() -> None:
    """The default is one for all or, in mutable tables, one per key."""
    table = Session("AnonymousMutableHashTable", INT64)
    table("LookupTableInsertV2", ints(1, 2).reshape(1, 2), ints(10, 20).reshape(1, 2))
    assert table.find(np.array(2)) == 20
    assert table.find(ints(2, 5).reshape(2, 1)) == [[20], [-1]]
    assert table.find(ints(4, 1, 5), [-1, -2, -3]) == [-1, 10, -3]
    assert filled().find(texts("x", "y"), [-1, -2]) == [-1, -1]
    for default in ([-1], [[-1, -2, -3]]):
        with pytest.raises(InvalidArgumentError, match=r"Expected shape \[\] or \[2\] for default value, got "):
            table.find(ints(1, 2), default)


def test_values_may_be_tensors() -> None:
    """All values have one shape."""
    table = Session("MutableHashTableOfTensorsV2", INT64, FLOAT, value_shape=(2,))
    rows = np.array([[1, 2], [3, 4]], np.float32)
    table("LookupTableInsertV2", ints(1, 2), rows)
    actual = table("LookupTableFindV2", ints(2, 9).reshape(1, 2), np.array([-1, -2], np.float32))
    assert actual.tolist() == [[[3, 4], [-1, -2]]]
    each = table("LookupTableFindV2", ints(2, 9), np.array([[5, 6], [7, 8]], np.float32))
    assert each.tolist() == [[3, 4], [7, 8]]
    assert table.export() == ([1, 2], rows.tolist())
    with pytest.raises(InvalidArgumentError, match=r"Expected shape \[2,2\] for value, got \[2\]"):
        table("LookupTableInsertV2", ints(1, 2), np.array([1, 2], np.float32))
    table("LookupTableImportV2", ints(), np.empty((0, 2), np.float32))
    assert table.export() == ([], [])


def test_a_static_table_is_filled_once() -> None:
    """Filling it again with as many keys changes nothing."""
    table = filled()
    table("InitializeTableV2", texts("a", "c"), ints(7, 8))
    assert table.find(texts("a", "b", "c")) == [1, 2, -1]
    repeated = Session()
    repeated("InitializeTableV2", texts("a", "a"), ints(1, 1))
    assert repeated("LookupTableSizeV2") == 1


@pytest.mark.parametrize(
    ("act", "kind", "message"),
    [
        (lambda: Session().find(texts("a")), FailedPreconditionError, "Table not initialized."),
        (lambda: Session().export(), AbortedError, "HashTable is not initialized."),
        (
            lambda: filled()("InitializeTableV2", texts("a"), ints(1)),
            FailedPreconditionError,
            "Table was already initialized with different data.",
        ),
        (
            lambda: Session()("InitializeTableV2", texts("a", "a"), ints(1, 2)),
            FailedPreconditionError,
            "HashTable has different value for same key. Key a has 1 and trying to add value 2",
        ),
        (
            lambda: Session()("InitializeTableV2", texts("a"), ints(1, 2)),
            InvalidArgumentError,
            "Keys and values must have the same size 1 vs 2",
        ),
        (
            lambda: Session()("InitializeTableV2", texts("a").reshape(1, 1), ints(1)),
            InvalidArgumentError,
            "Keys must be a vector, but received shape[1,1]",
        ),
        (
            lambda: Session()("InitializeTableV2", texts(), ints()),
            InvalidArgumentError,
            "keys and values cannot be empty tensors.",
        ),
        (
            lambda: filled()("LookupTableInsertV2", texts("a"), ints(1)),
            UnimplementedError,
            "Insert not supported by InitializableLookupTable implementations",
        ),
        (
            lambda: filled()("LookupTableRemoveV2", texts("a")),
            UnimplementedError,
            "Remove not supported by InitializableLookupTable implementations",
        ),
        (
            lambda: filled()("LookupTableFindV2", ints(1), ints(1).reshape(())),
            InvalidArgumentError,
            "Signature mismatch, have: resource, int64, int64->int64 expected: resource, string, int64->int64",
        ),
        (
            lambda: Session("MutableHashTableV2")("LookupTableInsertV2", texts("a"), np.zeros(1, np.float32)),
            InvalidArgumentError,
            "Signature mismatch, have: resource, string, float-> expected: resource, string, int64->",
        ),
        (
            lambda: Session("MutableHashTableV2", name="t")("InitializeTableV2", texts("a"), ints(1)),
            InvalidArgumentError,
            "Table localhost _0_t is not initializable",
        ),
    ],
)
def test_what_a_table_cannot_do_is_refused(act: Callable[[], Any], kind: type[PartitaError], message: str) -> None:
    """The error has TensorFlow's code and words."""
    with pytest.raises(kind) as caught:
        act()
    assert caught.value.message == message


def dense(empty: Any = 0, deleted: Any = -1, **attrs: Any) -> Session:
    """A table of int64 that shows its buckets."""
    session = Session.__new__(Session)
    session.state, session.types = DeviceState(seed=0), (INT64, INT64)
    keys = np.asarray(empty, np.int64), np.asarray(deleted, np.int64)
    session.handle = run("MutableDenseHashTableV2", *keys, state=session.state, value_dtype=INT64, **attrs)
    return session


def test_dense_tables_export_their_buckets() -> None:
    """The load decides their number; importing them gives the same table."""
    table = dense(initial_num_buckets=4, max_load_factor=0.5)
    table("LookupTableInsertV2", ints(5, 6, 7), ints(50, 60, 70))
    table("LookupTableRemoveV2", ints(6, 8))
    keys, values = table.export()
    assert (np.shape(keys), np.shape(values)) == ((8, 1), (8, 1))
    used = {key: value for [key], [value] in zip(keys, values, strict=True) if key}
    assert used == {5: 50, 7: 70}
    other = dense()
    other("LookupTableImportV2", np.array(keys), np.array(values))
    assert other.export() == (keys, values)
    assert other.find(ints(5, 6)) == [50, -1]
    assert other.find(ints(6, 9), [-5, -6]) == [-5, -5]
    with pytest.raises(InvalidArgumentError, match="for buckets"):
        other("LookupTableImportV2", ints(1), ints(1))


def test_dense_tables_have_keys_that_cannot_be_used() -> None:
    """An insertion of a reserved key fails and changes nothing."""
    table = dense()
    for bad, which in ((0, "empty_key"), (-1, "deleted_key")):
        with pytest.raises(InvalidArgumentError, match=f"Using the {which} as a table key is not allowed"):
            table("LookupTableInsertV2", ints(3, bad), ints(1, 2))
        with pytest.raises(InvalidArgumentError, match="is not allowed"):
            table.find(ints(bad))
    assert table("LookupTableSizeV2") == 0


def test_keys_of_dense_tables_may_be_vectors() -> None:
    """The last dimension of the keys that are looked up is one key."""
    table = dense([0, 0], [-1, -1])
    table("LookupTableInsertV2", ints(1, 2, 3, 4).reshape(2, 2), ints(12, 34))
    assert table.find(ints(3, 4, 5, 6).reshape(2, 2)) == [34, -1]
    with pytest.raises(InvalidArgumentError, match=r"Input key shape \[3\] must end with the table's key shape \[2\]"):
        table.find(ints(1, 2, 3))
    with pytest.raises(InvalidArgumentError, match=r"Expected key shape \[1\] got \[1,2\]"):
        dense().find(ints(5, 6).reshape(1, 2))


@pytest.mark.parametrize(
    ("attrs", "message"),
    [
        ({"initial_num_buckets": 6}, "Number of buckets must be at least 4 and a power of 2, got: 6"),
        ({"max_load_factor": 1.0}, "max_load_factor must be between 0 and 1, got: 1"),
        ({"deleted": 0}, "Empty and deleted keys cannot be equal"),
        ({"deleted": [0]}, "Empty and deleted keys must have same shape, got shapes: [] and [1]"),
        ({"value_shape": (2, 2)}, "Empty value must be a scalar or a vector, got shape [2,2]"),
    ],
)
def test_senseless_dense_tables_are_refused(attrs: dict[str, Any], message: str) -> None:
    """The error is raised when the table is made."""
    with pytest.raises(InvalidArgumentError) as caught:
        dense(**attrs)
    assert caught.value.message == message


def test_tables_of_one_name_are_one() -> None:
    """Tables of one name must have one type; each node without a name has its own table."""
    state = DeviceState(seed=0)

    def table_handle(name: str, **attrs: Any) -> Array:
        types = {"key_dtype": STRING, "value_dtype": INT64} | attrs
        return run("HashTableV2", state=state, name=name, **types)  # type: ignore[no-any-return]  # a kernel's result

    assert table_handle("x", shared_name="t").item().key == table_handle("y", shared_name="t").item().key
    assert table_handle("t", use_node_name_sharing=True).item().key == table_handle("y", shared_name="t").item().key
    assert table_handle("x").item().key != table_handle("y").item().key != table_handle("y", shared_name="y").item().key
    with pytest.raises(InvalidArgumentError, match="Conflicting key/value dtypes string->float with string-int64 for"):
        table_handle("z", shared_name="t", value_dtype=FLOAT)


def test_handles_of_other_things_are_refused() -> None:
    """The handle of a variable is refused, that of a removed table is not found."""
    state = DeviceState(seed=0)
    variable = run("VarHandleOp", state=state, dtype=FLOAT, shape=())
    with pytest.raises(InvalidArgumentError, match="using the wrong type"):
        run("LookupTableSizeV2", variable, state=state)
    table = filled()
    table.state.reset()
    with pytest.raises(NotFoundError):
        table("LookupTableSizeV2")


def from_file(
    folder: Path, content: str, key: int, value: int, types: tuple[DataType, DataType] = (STRING, INT64), **attrs: Any
) -> dict[Any, Any]:
    """The content of a table that was filled from a file with this content."""
    path = folder / "v.txt"
    path.write_bytes(content.encode())
    table = Session("HashTableV2", *types)
    table("InitializeTableFromTextFileV2", text(path), key_index=key, value_index=value, **attrs)
    return dict(zip(*table.export(), strict=True))


def test_files_have_an_entry_per_line(tmp_path: Path) -> None:
    """Lines, their numbers and their columns can be keys and values."""
    assert from_file(tmp_path, "x\ny\nz\n", -2, -1) == {b"x": 0, b"y": 1, b"z": 2}
    assert from_file(tmp_path, "x\r\ny", -1, -2, (INT64, STRING)) == {0: b"x", 1: b"y"}
    assert from_file(tmp_path, "a\t1\nb\t-2\n", 0, 1) == {b"a": 1, b"b": -2}
    assert from_file(tmp_path, "a,1.5\nb,2\n", 0, 1, (STRING, FLOAT), delimiter=",") == {b"a": 1.5, b"b": 2}
    assert from_file(tmp_path, "x\ny\nz\n", -2, -1, vocab_size=2, offset=5) == {b"x": 5, b"y": 6}


@pytest.mark.parametrize(
    ("content", "key", "value", "attrs", "kind", "message"),
    [
        ("", -2, -1, {}, OutOfRangeError, "Read less bytes than requested"),
        ("x\n\ny\n", -2, -1, {}, InvalidArgumentError, "Invalid content in {}: empty line found at position 3."),
        ("x\ny\n", -2, -1, {"vocab_size": 5}, InvalidArgumentError, "Invalid vocab_size in {}: expected 5 but got 2"),
        (
            "a\t1\n",
            0,
            2,
            {},
            InvalidArgumentError,
            "Invalid number of columns in {} line 0 (a\t1) : expected at least 3 got 2",
        ),
        ("a\tz\n", 0, 1, {}, InvalidArgumentError, "Field z in line 0 is not a valid int64."),
        ("a\n", -2, -1, {"delimiter": ",,"}, InvalidArgumentError, "delimiter should be only 1 char"),
        ("a\nb\na\n", -2, -1, {}, FailedPreconditionError, "HashTable has different value for same key. Key a has 0"),
        (
            "a\n",
            -2,
            -1,
            {"types": (STRING, FLOAT)},
            InvalidArgumentError,
            "Value index for line number requires table value dtype of int64, got float",
        ),
        ("a\t1\n", 0, 1, {"types": (STRING, DataType.BOOL)}, InvalidArgumentError, "Data type bool not supported."),
    ],
)
def test_files_that_do_not_fit_are_refused(
    tmp_path: Path, content: str, key: int, value: int, attrs: dict[str, Any], kind: type[PartitaError], message: str
) -> None:
    """The error has TensorFlow's code and words."""
    with pytest.raises(kind) as caught:
        from_file(tmp_path, content, key, value, **attrs)
    assert caught.value.message.startswith(message.format(tmp_path / "v.txt"))


def test_missing_files_are_said() -> None:
    """The error has the path."""
    with pytest.raises(NotFoundError, match="no/such/file; No such file or directory"):
        Session()("InitializeTableFromTextFileV2", text("no/such/file"), key_index=-2, value_index=-1)


def test_shapes_are_known_where_the_handle_tells() -> None:
    """Handles and sizes are scalars; the shape of values is unknown."""
    assert shapes("HashTableV2", key_dtype=STRING, value_dtype=INT64) == [()]
    assert shapes("LookupTableSizeV2", ()) == [()]
    assert shapes("LookupTableFindV2", (), (3,), ()) == [None]
    assert shapes("InitializeTableV2", (), (3,), (None,)) == []
    with pytest.raises(InvalidArgumentError):
        shapes("InitializeTableV2", (), (3,), (2,))
    assert construct("HashTableV2", key_dtype=STRING, value_dtype=INT64).output_types == (DataType.RESOURCE,)
