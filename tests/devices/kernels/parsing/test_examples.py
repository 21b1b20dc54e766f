"""ParseExample finds the values that were written, and refuses what TensorFlow refuses, in its words."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.devices.kernels.registry import lookup
from partita.devices.kernels.strings.each_string import strings
from partita.errors import InvalidArgumentError
from partita.graph.dtypes import Array, DataType
from partita.graph.protos import Feature
from tests.devices.kernels.harness import check_shapes, construct, shapes
from tests.devices.kernels.parsing.records import FLOAT, INT64, STRING, example, floats, ints, nothing, texts, vector

Dense = tuple[DataType, tuple[int | None, ...], Array]


def parse(
    records: list[bytes] | bytes,
    dense: dict[str, Dense] | None = None,
    sparse: dict[str, DataType] | None = None,
    ragged: dict[str, DataType] | None = None,
    names: tuple[bytes, ...] = (),
    op: str = "ParseExampleV2",
) -> list[Array]:
    """The outputs of the second version, or of another op with the same features."""
    dense, sparse, ragged = dense or {}, sparse or {}, ragged or {}
    keys = [vector([key.encode() for key in each]) for each in (sparse, dense, ragged)]
    serialized = strings([records], ()) if isinstance(records, bytes) else vector(records)
    defaults = [default for _, _, default in dense.values()]
    attrs: dict[str, Any] = {
        "sparse_types": tuple(sparse.values()),
        "Tdense": tuple(dtype for dtype, _, _ in dense.values()),
        "dense_shapes": tuple(shape for _, shape, _ in dense.values()),
    }
    if op == "ParseExampleV2":
        attrs |= {"num_sparse": len(sparse), "ragged_value_types": tuple(ragged.values())}
        attrs["ragged_split_types"] = (DataType.INT32,) * len(ragged)
        result = check_shapes(op, serialized, vector(names), *keys, defaults, **attrs)
    elif op == "ParseExample":
        scalars = [[strings([key], ()) for key in each] for each in keys[:2]]
        result = check_shapes(op, serialized, vector(names), *scalars, defaults, **attrs)
    else:
        attrs |= {"num_sparse": len(sparse), "sparse_keys": keys[0].tolist(), "dense_keys": keys[1].tolist()}
        result = check_shapes(op, serialized, defaults, **attrs)
    return list(result) if isinstance(result, tuple) else [result]


@given(st.lists(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=5), max_size=4))
def test_dense_sparse_and_ragged_agree(rows: list[list[int]]) -> None:
    """All hold the same rows."""
    records = [example(x=ints(*row), y=ints(*row), z=ints(*row)) for row in rows]
    indices, values, shape, padded, flat, splits = parse(
        records, {"y": (INT64, (None,), np.array(7))}, {"x": INT64}, {"z": INT64}
    )
    width = max(map(len, rows), default=0)
    assert padded.tolist() == [row + [7] * (width - len(row)) for row in rows]
    assert values.tolist() == flat.tolist() == [value for row in rows for value in row]
    assert shape.tolist() == [len(rows), width]
    assert indices.tolist() == [[i, k] for i, row in enumerate(rows) for k in range(len(row))]
    assert splits.tolist() == np.cumsum([0, *map(len, rows)]).tolist()


def test_fixed_sizes_and_defaults() -> None:
    """A record without the feature, or with an empty one, takes the default."""
    default = np.array([[1, 2]], np.float32)
    records = [example(x=floats(3, 4)), example(), example(x=Feature())]
    (dense,) = parse(records, {"x": (FLOAT, (1, 2), default)})
    assert dense.tolist() == [[[3, 4]], [[1, 2]], [[1, 2]]]
    (dense,) = parse([example(x=texts(b"a")), example(x=texts(b""))], {"x": (STRING, (), nothing(STRING))})
    assert dense.tolist() == [b"a", b""]


def test_rows_of_unknown_number_are_padded() -> None:
    """TensorFlow 2.21 gives these."""
    records = [example(x=ints(1, 2)), example(x=ints(5, 6, 7, 8)), example()]
    (dense,) = parse(records, {"x": (INT64, (None, 2), np.array([9]))})
    assert dense.tolist() == [[[1, 2], [9, 9]], [[5, 6], [7, 8]], [[9, 9], [9, 9]]]


def test_a_single_record_has_no_batch_axis() -> None:
    """Nor row splits."""
    record = example(x=ints(1, 2), y=floats(3), s=texts(b"a"))
    features: dict[str, Dense] = {"x": (INT64, (None,), np.array(0)), "s": (STRING, (), nothing(STRING))}
    indices, values, shape, x, s, ragged, splits = parse(record, features, {"y": FLOAT}, {"x": INT64})
    assert (indices.tolist(), values.tolist(), shape.tolist()) == ([[0]], [3], [1])
    assert (x.tolist(), s.tolist(), ragged.tolist(), splits.tolist()) == ([1, 2], b"a", [1, 2], [])


def test_the_older_ops_take_their_keys_otherwise() -> None:
    """As scalars, and as attrs."""
    features: dict[str, Dense] = {"x": (INT64, (2,), nothing(INT64))}
    record = example(x=ints(1, 2), y=floats(3))
    outputs = parse([record], features, {"y": FLOAT}, op="ParseExample")
    assert [output.tolist() for output in outputs] == [[[0, 0]], [3], [1, 1], [[1, 2]]]
    outputs = parse(record, features, {"y": FLOAT}, op="ParseSingleExample")
    assert [output.tolist() for output in outputs] == [[[0]], [3], [1], [1, 2]]


RECORD = example(x=ints(1, 2))


@pytest.mark.parametrize(
    ("dense", "batch", "single"),
    [
        (
            {"y": (INT64, (2,), nothing(INT64))},
            "Name: nm, Feature: y (data type: int64) is required but could not be found.",
            "Feature: y (data type: int64) is required but could not be found.",
        ),
        (
            {"x": (FLOAT, (2,), nothing(FLOAT))},
            "Name: nm, Key: x, Index: 0.  Data types don't match. Data type: int64 but expected type: float",
            "Key: x.  Data types don't match. Data type: int64 but expected type: float",
        ),
        (
            {"x": (INT64, (3, 1), nothing(INT64))},
            "Name: nm, Key: x, Index: 0.  Number of int64 values != expected.  Values size: 2 but output shape: [3,1]",
            "Key: x.  Can't parse serialized Example: Some int64_list slice was not parsed.",
        ),
        (
            {"x": (INT64, (None, 3), np.array(0))},
            "Name: nm, Key: x, Index: 0.  Number of int64 values is not a multiple of stride length. "
            "Saw 2 values but output shape is: [?,3]",
            "Error while parsing feature with key x: number of elements should be divisible by 3, found 2 instead",
        ),
        (
            {"x": (INT64, (None,), nothing(INT64))},
            "dense_shape[0] is a variable length shape: [?], therefore def_value[0] must contain a single element "
            "(the padding element).  But its shape is: [0]",
            "",
        ),
        (
            {"x": (INT64, (2,), np.array([1]))},
            "def_value[0].shape() == [1] is not compatible with dense_shapes_[0] == [2]",
            "",
        ),
    ],
)
def test_wrong_features_are_refused(dense: dict[str, Dense], batch: str, single: str) -> None:
    """In TensorFlow's words, which differ between a batch and a single record."""
    with pytest.raises(InvalidArgumentError) as error:
        parse([RECORD], dense, names=(b"nm",))
    assert str(error.value) == batch
    with pytest.raises(InvalidArgumentError) as error:
        parse(RECORD, dense)
    assert str(error.value) == (single or batch)


def test_wrong_types_of_sparse_and_ragged_features() -> None:
    """The record is named by its number."""
    message = "Name: <unknown>, Key: x, Index: 1.  Data types don't match. Expected type: string, Actual type: int64"
    for kind in ("sparse", "ragged"):
        with pytest.raises(InvalidArgumentError) as error:
            parse([example(), RECORD], **{kind: {"x": STRING}})  # type: ignore[arg-type]  # one of two dictionaries
        assert str(error.value) == message


def test_wrong_arguments_are_refused() -> None:
    """Names for other records, texts that do not parse, and shapes with unknown inner sizes."""
    with pytest.raises(InvalidArgumentError, match=r"name.shape=\[2\], serialized.shape=\[1\]"):
        parse([RECORD], names=(b"a", b"b"))
    with pytest.raises(InvalidArgumentError, match="Could not parse example input, value: 'abc'"):
        parse([b"abc"], sparse={"x": INT64})
    with pytest.raises(InvalidArgumentError, match="unknown rank or unknown inner dimensions"):
        parse([RECORD], {"x": (INT64, (2, None), nothing(INT64))})


def test_shapes_of_an_unknown_batch() -> None:
    """An unknown rank leaves the rank of sparse tensors open."""
    keys = [np.zeros(0, object)] * 3
    attrs = {"num_sparse": 1, "sparse_types": (INT64,), "Tdense": (INT64,), "dense_shapes": ((2,),)}
    attrs |= {"ragged_value_types": (INT64,), "ragged_split_types": (INT64,)}
    for batch, rank, dense, splits in ((None, None, None, None), ((3,), 2, (3, 2), 4), ((None,), 2, (None, 2), None)):
        found = shapes("ParseExampleV2", batch, (None,), *keys, [(0,)], **attrs)
        assert found == [(None, rank), (None,), (rank,), dense, (None,), (splits,)]


@pytest.mark.parametrize("is_constant", [False, True])
def test_each_call_has_its_own_keys(is_constant: bool) -> None:
    """Whether they are constants, which are checked once, or not, and then may change in place."""
    attrs: dict[str, Any] = {"num_sparse": 0, "sparse_types": (), "Tdense": (INT64,), "dense_shapes": ((1,),)}
    factory = lookup("ParseExampleV2")
    assert factory is not None
    record, none, default = vector([example(x=ints(3), y=ints(4))]), vector([]), np.array([7])
    keys = vector([b"x"])
    inputs = record, none, none, keys, none, [default]
    kernel = factory(construct("ParseExampleV2", *inputs, **attrs, ragged_value_types=(), ragged_split_types=()))
    other = vector([b"y"]) if is_constant else keys
    for array in (none, default, keys, other):
        array.flags.writeable = not is_constant
    for array, key, expected in ((keys, b"x", 3), (keys, b"x", 3), (other, b"y", 4)):
        if not is_constant:
            array[0] = key
        assert kernel(record, none, none, array, none, default).tolist() == [[expected]]
    with pytest.raises(InvalidArgumentError, match=r"Expected len\(dense_keys\) == len\(dense_types\)"):
        kernel(record, none, none, vector([b"x", b"y"]), none, default)
