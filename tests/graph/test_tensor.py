"""TensorProto <-> numpy in every encoding."""

from __future__ import annotations

import re

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given

from partita.errors import InvalidArgumentError
from partita.graph import DataType, TensorProto, numpy_to_tensor, tensor_to_numpy
from partita.graph.dtypes import Array
from partita.graph.protos import TensorShapeProto
from partita.graph.tensor import shape_from_proto, shape_to_proto
from tests.strategies import tensor_protos, tensors


def _proto(dtype: DataType, shape: tuple[int, ...] | None, **fields: object) -> TensorProto:
    proto = TensorProto(dtype=f"DT_{dtype.name}", tensor_shape=shape_to_proto(shape))
    for name, value in fields.items():
        if isinstance(value, bytes):
            setattr(proto, name, value)
        else:
            getattr(proto, name).extend(value)
    return proto


@given(tensors())
def test_an_array_survives_the_round_trip(array: Array) -> None:
    """Encoding and decoding gives the same bits, shape and element type."""
    decoded = tensor_to_numpy(numpy_to_tensor(array))
    assert (decoded.dtype, decoded.shape) == (array.dtype, array.shape)
    assert decoded.tolist() == array.tolist() if array.dtype.kind == "O" else decoded.tobytes() == array.tobytes()


@given(tensor_protos())
def test_every_encoding_decodes_to_the_same_values(case: tuple[TensorProto, Array]) -> None:
    """Raw content, full and shortened typed fields all mean the same array."""
    proto, expected = case
    decoded = tensor_to_numpy(proto)
    assert (decoded.dtype, decoded.shape) == (expected.dtype, expected.shape)
    assert (
        decoded.tolist() == expected.tolist() if expected.dtype.kind == "O" else decoded.tobytes() == expected.tobytes()
    )


@pytest.mark.parametrize(
    ("proto", "expected"),
    [
        (_proto(DataType.FLOAT, (3,)), np.zeros(3, np.float32)),
        (_proto(DataType.FLOAT, (3,), float_val=[1, 2]), np.array([1, 2, 2], np.float32)),
        (_proto(DataType.FLOAT, (1,), float_val=[1, 2]), np.array([1], np.float32)),
        (_proto(DataType.UINT8, (2,), int_val=[300, -1]), np.array([44, 255], np.uint8)),
        (_proto(DataType.QINT32, (1,), int_val=[-5]), np.array([-5], np.int32)),
        (_proto(DataType.HALF, (1,), half_val=[0x3C00]), np.array([1], np.float16)),
        (_proto(DataType.BFLOAT16, (2,), half_val=[0x3F80]), np.array([1, 1], ml_dtypes.bfloat16)),
        (_proto(DataType.COMPLEX64, (2,), scomplex_val=[1, 2]), np.array([1 + 2j, 1 + 2j], np.complex64)),
        (_proto(DataType.COMPLEX128, (1,), dcomplex_val=[3, -1]), np.array([3 - 1j])),
        (_proto(DataType.UINT64, (1,), uint64_val=[1 << 63]), np.array([1 << 63], np.uint64)),
        (_proto(DataType.BOOL, (2,), bool_val=[True]), np.array([True, True])),
        (_proto(DataType.STRING, (3,), string_val=[b"a", b""]), np.array([b"a", b"", b""], object)),
        (_proto(DataType.STRING, (2,), tensor_content=b"\x01\x02xyz"), np.array([b"x", b"yz"], object)),
        (_proto(DataType.INT32, (0, 2), tensor_content=b"ignored"), np.zeros((0, 2), np.int32)),
        (_proto(DataType.FLOAT, None, float_val=[3]), np.float32(3)),
    ],
)
def test_encodings_by_hand(proto: TensorProto, expected: Array) -> None:
    """Absent values are zero, short fields repeat their last value, long ones are cut, halves carry bit patterns."""
    decoded = tensor_to_numpy(proto)
    assert decoded.dtype == expected.dtype
    assert decoded.tolist() == expected.tolist()


def test_decoded_tensors_cannot_be_written_to() -> None:
    """A constant is shared by all steps, so its array is read-only."""
    assert not tensor_to_numpy(_proto(DataType.FLOAT, (2,), float_val=[1])).flags.writeable
    assert not tensor_to_numpy(_proto(DataType.STRING, (2,), string_val=[b"x"])).flags.writeable


@pytest.mark.parametrize(
    ("proto", "message"),
    [
        (_proto(DataType.INVALID, ()), "INVALID"),
        (_proto(DataType.FLOAT_REF, ()), "float_ref"),
        (_proto(DataType.FLOAT, (-2,)), r"Shape \[-2\] is not fully defined"),
        (_proto(DataType.FLOAT, (2**40, 2**40), float_val=[1]), "more elements than can be counted"),
        (_proto(DataType.FLOAT, (2,), tensor_content=b"1234567"), "must be 8 bytes, it is 7"),
        (_proto(DataType.STRING, (2,), tensor_content=b"\x01\x05xyz"), "add up to 6"),
        (_proto(DataType.STRING, (2,), tensor_content=b"\x81"), "ends inside a length"),
    ],
)
def test_bad_tensors_are_refused(proto: TensorProto, message: str) -> None:
    """A type, shape or content that no tensor can have is an InvalidArgumentError that names the problem."""
    with pytest.raises(InvalidArgumentError, match=message):
        tensor_to_numpy(proto)


def test_arrays_that_no_tensor_holds_are_refused() -> None:
    """Datetimes and objects other than text have no element type."""
    with pytest.raises(InvalidArgumentError, match="datetime64"):
        numpy_to_tensor(np.array(["2020-01-01"], "datetime64[D]"))
    with pytest.raises(InvalidArgumentError, match="bytes or text"):
        numpy_to_tensor(np.array([1, None], object))


_HUGE = 1 << 40


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ((2, -3), "dimensions with values below -1"),
        ((_HUGE, _HUGE, -5), "is too large (more than 2**63 - 1 entries)"),
        ((-5, _HUGE, _HUGE), "dimensions with values below -1"),
        ((1 << 31, 1 << 32), "is too large (more than 2**63 - 1 entries)"),
        ((_HUGE, _HUGE, 0), "is too large (more than 2**63 - 1 entries)"),
        ((*(1,) * 254, -5), "has too many dimensions"),
        ((0, _HUGE, _HUGE), ""),
        ((-1, _HUGE, _HUGE), ""),
        ((_HUGE, -1, _HUGE), ""),
        ((1 << 62, 1), ""),
        ((1,) * 254, ""),
    ],
)
def test_a_shape_is_one_that_a_tensor_may_have(sizes: tuple[int, ...], message: str) -> None:
    """TensorFlow 2.21 accepts these and refuses those: elements are counted up to the first unknown size."""
    proto = TensorShapeProto(dim=[TensorShapeProto.Dim(size=size) for size in sizes])
    if message:
        with pytest.raises(InvalidArgumentError, match=re.escape(message)):
            shape_from_proto(proto)
    else:
        assert shape_from_proto(proto) == tuple(None if size < 0 else size for size in sizes)


def test_an_unknown_shape_has_no_sizes() -> None:
    """Not even unknown ones."""
    proto = TensorShapeProto(unknown_rank=True, dim=[TensorShapeProto.Dim(size=-1)])
    with pytest.raises(InvalidArgumentError, match="must not have any dimensions set"):
        shape_from_proto(proto)
