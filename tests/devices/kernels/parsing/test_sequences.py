"""SequenceExamples become the tensors that TensorFlow makes of them, and its errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from partita.devices.kernels.strings.each_string import strings
from partita.errors import InvalidArgumentError
from partita.graph.dtypes import Array, DataType
from tests.devices.kernels.harness import check_shapes, run, shapes
from tests.devices.kernels.parsing.records import FLOAT, INT64, floats, ints, nothing, sequence, texts, vector

FIRST = sequence({"c": ints(1, 2)}, {"f": [floats(1, 2), floats(3, 4)], "g": [ints(1), ints(), ints(2, 3)]})
SECOND = sequence({"c": ints(3, 4)}, {"f": [floats(5, 6)]})
Types = dict[str, DataType]
Dense = dict[str, tuple[DataType, tuple[int, ...]]]


def parse(
    records: list[bytes] | bytes,
    context: Types | None = None,
    context_dense: Dense | None = None,
    lists: Types | None = None,
    lists_dense: Dense | None = None,
    ragged: tuple[Types, Types] = ({}, {}),
    may_lack: bool = False,
    names: tuple[bytes, ...] = (),
    defaults: list[Array] | None = None,
) -> list[Any]:
    """The outputs of the second version, as lists."""
    context, context_dense, lists, lists_dense = context or {}, context_dense or {}, lists or {}, lists_dense or {}
    keys = [list(each) for each in (context, context_dense, ragged[0], lists, lists_dense, ragged[1])]
    serialized = strings([records], ()) if isinstance(records, bytes) else vector(records)
    absent = [nothing(dtype) for dtype, _ in context_dense.values()] if defaults is None else defaults
    split_types = [(DataType.INT32,) * len(each) for each in ragged]
    result = check_shapes(
        "ParseSequenceExampleV2",
        *(serialized, vector(names), *(vector([key.encode() for key in each]) for each in keys)),
        *(np.full(len(lists_dense), may_lack), absent),
        Ncontext_sparse=len(context),
        context_sparse_types=tuple(context.values()),
        Tcontext_dense=tuple(dtype for dtype, _ in context_dense.values()),
        context_dense_shapes=tuple(shape for _, shape in context_dense.values()),
        Nfeature_list_sparse=len(lists),
        feature_list_sparse_types=tuple(lists.values()),
        Nfeature_list_dense=len(lists_dense),
        feature_list_dense_types=tuple(dtype for dtype, _ in lists_dense.values()),
        feature_list_dense_shapes=tuple(shape for _, shape in lists_dense.values()),
        context_ragged_value_types=tuple(ragged[0].values()),
        context_ragged_split_types=split_types[0],
        feature_list_ragged_value_types=tuple(ragged[1].values()),
        feature_list_ragged_split_types=split_types[1],
    )
    return [part.tolist() for part in (result if isinstance(result, tuple) else (result,))]


def test_sparse_and_dense_features_of_a_batch() -> None:
    """TensorFlow 2.21 gives these; steps that a record lacks are zero."""
    found = parse([FIRST, SECOND], {"c": INT64}, None, {"g": INT64}, {"f": (FLOAT, (2,))})
    assert found[:3] == [[[0, 0], [0, 1], [1, 0], [1, 1]], [1, 2, 3, 4], [2, 2]]
    assert found[3:6] == [[[0, 0, 0], [0, 2, 0], [0, 2, 1]], [1, 2, 3], [2, 3, 2]]
    assert found[6:] == [[[[1, 2], [3, 4]], [[5, 6], [0, 0]]], [2, 1]]


def test_ragged_features_of_a_batch() -> None:
    """Values, then the splits of records, then those of steps. TensorFlow 2.21 gives these."""
    found = parse([FIRST, SECOND], ragged=({"c": INT64}, {"g": INT64, "f": FLOAT}))
    assert found[:2] == [[1, 2, 3, 4], [0, 2, 4]]
    assert found[2:4] == [[1, 2, 3], [1, 2, 3, 4, 5, 6]]
    assert found[4:] == [[0, 3, 3], [0, 2, 3], [0, 1, 1, 3], [0, 2, 4, 6]]


def test_a_single_record_has_no_batch_axis() -> None:
    """TensorFlow 2.21 gives these."""
    found = parse(FIRST, None, {"c": (INT64, (2,))}, {"g": INT64}, {"f": (FLOAT, (2,))})
    assert found == [[1, 2], [[0, 0], [2, 0], [2, 1]], [1, 2, 3], [3, 2], [[1, 2], [3, 4]], 2]


def test_absent_features_take_the_default() -> None:
    """An absent list that may be absent is empty."""
    found = parse(
        [SECOND], None, {"d": (INT64, (2,))}, None, {"g": (INT64, (1,))}, may_lack=True, defaults=[np.array([7, 8])]
    )
    assert found == [[[7, 8]], [[]], [0]]


LACKING = (
    "Feature list 'g' is required but could not be found.  Did you mean to include it in "
    "feature_list_dense_missing_assumed_empty or feature_list_dense_defaults?"
)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"context": {"c": FLOAT}}, "Name: nm, Context feature: c.  Data types don't match. Expected type: float"),
        (
            {"context_dense": {"c": (INT64, (3,))}},
            "Inconsistent max number of elements for feature c: expected 3, but found 2",
        ),
        (
            {"context_dense": {"d": (INT64, (3,))}},
            "Inconsistent max number of elements for feature d: expected 3, but found 0",
        ),
        ({"lists": {"f": INT64}}, "Name: nm, Feature list: f, Index: 0.  Data types don't match. Expected type: int64"),
        (
            {"lists_dense": {"g": (INT64, ())}},
            "Name: nm, Key: g, Index: 1.  Number of values != expected.  values size: 0 but output shape: []",
        ),
        (
            {"lists_dense": {"g": (INT64, (2,))}},
            "Feature list 'g' has an unexpected number of values.  Total values size: 3 is not consistent with output "
            "shape: [?,2]",
        ),
        (
            {"context": {"c": INT64}, "context_dense": {"c": (INT64, (2,))}},
            "Context feature c cannot be both dense and sparse",
        ),
        ({"lists": {"c": INT64}, "ragged": ({}, {"c": INT64})}, "Sequence feature c cannot be both ragged and sparse"),
    ],
)
def test_wrong_features_are_refused(arguments: dict[str, Any], message: str) -> None:
    """In TensorFlow's words."""
    with pytest.raises(InvalidArgumentError) as error:
        parse([FIRST], names=(b"nm",), **arguments)
    assert str(error.value) == message


def test_wrong_records_are_refused() -> None:
    """Lists that are required, records of another size, texts that do not parse, names for other records."""
    with pytest.raises(InvalidArgumentError, match="Name: <unknown>, " + LACKING[:40]):
        parse([SECOND], lists_dense={"g": (INT64, ())})
    with pytest.raises(InvalidArgumentError, match="Unexpected number of elements in example b"):
        parse([FIRST, sequence({"c": ints(1)}, {})], context_dense={"c": (INT64, (2,))}, names=(b"a", b"b"))
    with pytest.raises(InvalidArgumentError, match=r"Feature: c \(data type: int64\) is required"):
        parse([FIRST, sequence({}, {})], context_dense={"c": (INT64, (2,))})
    with pytest.raises(InvalidArgumentError, match="Invalid protocol message input, example id: <unknown>"):
        parse([b"abc"])
    with pytest.raises(InvalidArgumentError, match="example_names must be empty or have the correct number"):
        parse([FIRST], names=(b"a", b"b"))


def test_the_first_version_has_keys_as_attrs() -> None:
    """Its shape function wants a batch."""
    attrs: dict[str, Any] = {"context_dense_keys": [b"c"], "Ncontext_dense": 1, "context_dense_shapes": ((2,),)}
    attrs |= {"feature_list_dense_keys": [b"g"], "feature_list_dense_types": (INT64,), "Nfeature_list_dense": 1}
    attrs |= {"feature_list_dense_missing_assumed_empty": [b"g"], "feature_list_dense_shapes": ((),)}
    attrs |= {"context_sparse_keys": [], "feature_list_sparse_keys": [], "Tcontext_dense": (INT64,)}
    found = check_shapes("ParseSequenceExample", vector([SECOND]), vector([]), [nothing(INT64)], **attrs)
    assert [part.tolist() for part in found] == [[[3, 4]], [[]], [0]]
    with pytest.raises(InvalidArgumentError, match="Shape must be rank 1 but is rank 0"):
        shapes("ParseSequenceExample", (), (None,), [(0,)], **attrs)


def single(record: bytes, **features: Any) -> Any:
    """The outputs of ParseSingleSequenceExample; features are lists of (key, type, shape)."""
    groups = [features.get(name, []) for name in ("context", "context_dense", "lists", "lists_dense")]
    keys = [[strings([key.encode()], ()) for key, *_ in group] for group in groups]
    types = [tuple(each[1] for each in group) for group in groups]
    defaults = [each[3] if len(each) > 3 else nothing(each[1]) for each in groups[1]]
    may_lack = vector(features.get("may_lack", []))
    attrs = {"context_sparse_types": types[0], "Tcontext_dense": types[1], "feature_list_sparse_types": types[2]}
    attrs |= {"feature_list_dense_types": types[3], "context_dense_shapes": tuple(each[2] for each in groups[1])}
    attrs |= {"feature_list_dense_shapes": tuple(each[2] for each in groups[3])}
    inputs = strings([record], ()), may_lack, *keys, defaults, strings([b"nm"], ())
    return check_shapes("ParseSingleSequenceExample", *inputs, **attrs)


@pytest.mark.parametrize("place", [2, 3, 4, 5, 7])
def test_keys_of_one_sequence_are_scalars(place: int) -> None:
    """So is the name; each other input is valid."""
    keys = [[strings([key], ())] for key in (b"c", b"d", b"g", b"f")]
    inputs = [strings([FIRST], ()), vector([]), *keys, [np.array([5])], strings([b"nm"], ())]
    inputs[place] = [vector([b"c"])] if place < 6 else vector([b"nm"])
    attrs: dict[str, Any] = {"context_sparse_types": (INT64,), "feature_list_sparse_types": (INT64,)}
    attrs |= {"feature_list_dense_types": (FLOAT,), "Tcontext_dense": (INT64,)}
    attrs |= {"context_dense_shapes": ((1,),), "feature_list_dense_shapes": ((2,),)}
    with pytest.raises(InvalidArgumentError, match=r"(every key|debug_name) must be a scalar, not shape \[1\]"):
        run("ParseSingleSequenceExample", *inputs, **attrs)


def test_one_sequence() -> None:
    """TensorFlow 2.21 gives these."""
    features = {"context": [("c", INT64)], "context_dense": [("c", INT64, (2,)), ("d", INT64, (1,), np.array([5]))]}
    lists = {"lists": [("g", INT64)], "lists_dense": [("f", FLOAT, (2,)), ("z", FLOAT, (2,))], "may_lack": [b"z"]}
    found = [part.tolist() for part in single(FIRST, **features, **lists)]
    assert found[:5] == [[[0], [1]], [1, 2], [2], [1, 2], [5]]
    assert found[5:] == [[[0, 0], [2, 0], [2, 1]], [1, 2, 3], [3, 2], [[1, 2], [3, 4]], []]


@pytest.mark.parametrize(
    ("features", "message"),
    [
        (
            {"context": [("c", FLOAT)]},
            "Name: nm, Context feature: c.  Data types don't match. Expected type: float  Feature is: ",
        ),
        ({"context_dense": [("d", INT64, (3,))]}, "Name: nm, Context feature 'd' is required but could not be found."),
        (
            {"context_dense": [("c", INT64, (3,))]},
            "Name: nm, Key: c, Index: 0.  Number of int64 values != expected.  values size: 2",
        ),
        (
            {"lists": [("f", INT64)]},
            "Name: nm, Feature List: f, Index: 0.  Data types don't match. Expected type: int64  ",
        ),
        (
            {"lists_dense": [("f", INT64, (2,))]},
            "Name: nm, Feature list: f, Index: 0.  Data types don't match. Expected",
        ),
        ({"lists_dense": [("z", INT64, (2,))]}, "Name: nm, Feature list 'z' is required but could not be found."),
    ],
)
def test_wrong_features_of_one_sequence_are_refused(features: dict[str, Any], message: str) -> None:
    """In TensorFlow's words."""
    with pytest.raises(InvalidArgumentError) as error:
        single(FIRST, **features)
    assert str(error.value).startswith(message)


def test_an_empty_feature_is_no_dense_one() -> None:
    """Unlike in a batch."""
    record = sequence({}, {"f": [texts()]})
    with pytest.raises(InvalidArgumentError, match="Data types don't match"):
        single(record, lists_dense=[("f", INT64, ())])
    with pytest.raises(InvalidArgumentError, match="is not fully defined"):
        run(
            "ParseSingleSequenceExample",
            *(
                strings([FIRST], ()),
                vector([]),
                [],
                [strings([b"c"], ())],
                [],
                [],
                [nothing(INT64)],
                strings([b""], ()),
            ),
            context_sparse_types=(),
            feature_list_sparse_types=(),
            feature_list_dense_types=(),
            context_dense_shapes=((None,),),
            feature_list_dense_shapes=(),
            Tcontext_dense=(INT64,),
        )
