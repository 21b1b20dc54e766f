"""StringFormat writes tensors as TensorFlow does; serialized tensors come back bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given

from partita.devices.kernels.strings.each_string import strings
from partita.errors import InvalidArgumentError
from partita.graph.dtypes import Array, DataType, from_numpy
from tests.devices.kernels.harness import check_shapes, run
from tests.devices.kernels.random_arrays import arrays


@pytest.mark.parametrize(
    ("x", "summarize", "text"),
    [
        (np.arange(1, 9), 3, b"[1 2 3 ... 6 7 8]"),
        (np.array([[1, 2], [3, 4]]), 3, b"[[1 2]\n [3 4]]"),
        (np.arange(100).reshape(10, 10), 1, b"[[0 ... 9]\n ...\n [90 ... 99]]"),
        (np.zeros((2, 2, 1), np.int32), -1, b"[[[0]\n  [0]]\n\n [[0]\n  [0]]]"),
        (np.array([0.1, 1e-7, 1e20, 1 / 3, 123456789], np.float32), -1, b"[0.1 1e-07 1e+20 0.333333343 123456792]"),
        (np.array([0.1, 1 / 3, np.nan, -np.inf]), -1, b"[0.1 0.33333333333333331 nan -inf]"),
        (np.array([0.1], np.float16), -1, b"[0.0999755859]"),
        (np.array([True, False]), -1, b"[1 0]"),
        (strings([b'b"c', b"\xc3\xa9\n"], (2,)), -1, b'["b\\"c" "\xc3\xa9\\n"]'),
        (np.array([1j]), -1, b"[?]"),
        (np.zeros((2, 0)), -1, b"[\n ...]"),
        (np.zeros(0), -1, b"[]"),
        (np.float64(2.5), -1, b"2.5"),
    ],
)
def test_tensors_in_words(x: Array, summarize: int, text: bytes) -> None:
    """Each text is TensorFlow's."""
    assert (
        check_shapes("StringFormat", [np.asarray(x)], template="<%s>", summarize=summarize).item() == b"<" + text + b">"
    )


def test_every_placeholder_takes_one_tensor() -> None:
    """In order; the numbers of placeholders and tensors must agree."""
    inputs = [np.array(True), np.array(2.5)]
    assert run("StringFormat", inputs, template="{} x {}", placeholder="{}").item() == b"1 x 2.5"
    with pytest.raises(InvalidArgumentError, match=r"num placeholders in template and num inputs must match: 2 vs\. 1"):
        run("StringFormat", inputs[:1], template="%s %s")


@given(arrays())
def test_parsing_undoes_serializing(x: Array) -> None:
    """Type, shape and bits are kept."""
    again = run("ParseTensor", check_shapes("SerializeTensor", x), out_type=from_numpy(x))
    assert (again.dtype, again.shape) == (x.dtype, x.shape)
    assert again.tolist() == x.tolist() if x.dtype == object else again.tobytes() == x.tobytes()


def test_serialized_bytes_are_those_of_tensorflow() -> None:
    """Numbers as raw content, strings as a list."""
    assert (
        run("SerializeTensor", np.array([1, 2], np.float32)).item()
        == b'\x08\x01\x12\x04\x12\x02\x08\x02"\x08\0\0\x80?\0\0\0@'
    )
    assert run("SerializeTensor", strings([b"a", b"b"], (2,))).item() == b"\x08\x07\x12\x04\x12\x02\x08\x02B\x01aB\x01b"


def test_what_is_no_tensor_of_the_type_is_refused() -> None:
    """Invalid bytes, and a tensor of another type."""
    with pytest.raises(InvalidArgumentError, match="Could not parse `serialized` as TensorProto, base64: eno="):
        run("ParseTensor", strings([b"zz"], ()), out_type=DataType.FLOAT)
    with pytest.raises(InvalidArgumentError, match="Cannot parse tensor from proto"):
        run("ParseTensor", strings([b""], ()), out_type=DataType.FLOAT)
    with pytest.raises(InvalidArgumentError, match=r"parsed tensor \(int32\) and dtype \(float\)"):
        run("ParseTensor", run("SerializeTensor", np.array([1], np.int32)), out_type=DataType.FLOAT)
    with pytest.raises(InvalidArgumentError, match=r"Expected `serialized` to be a scalar, got shape: \[1\]"):
        run("ParseTensor", strings([b""], (1,)), out_type=DataType.FLOAT)


@pytest.mark.parametrize(
    ("x", "summarize", "text"),
    [
        (np.zeros((2, 2), np.complex64), 3, b"[? ? ?...]"),
        (np.zeros(2, np.complex64), -1, b"[? ?]"),
        (np.array(0, np.complex64), 3, b"?"),
        (np.array(0, np.float32), 0, b"..."),
    ],
)
def test_types_without_words_are_counted(x: Any, summarize: int, text: bytes) -> None:
    assert run("StringFormat", [x], template=b"{}", placeholder=b"{}", summarize=summarize).item() == text
