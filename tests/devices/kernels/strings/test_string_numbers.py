"""Kernels between strings and numbers: parsing, printing, raw bytes, base64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.errors import InvalidArgumentError
from partita.graph.dtypes import Array, DataType
from tests.devices.kernels.harness import check_shapes, run
from tests.devices.kernels.random_arrays import same, texts
from tests.devices.kernels.strings.text_tensors import scalar, vectors


def test_what_is_no_number_is_padded_with_spaces_as_by_printf() -> None:
    x = np.array([np.nan, -np.inf, 1.5], np.float32)
    assert run("AsString", x, width=8, fill=b"0", precision=1).tolist() == [b"     nan", b"    -inf", b"000001.5"]
    pair = run("AsString", np.array([complex(np.inf, 1)], np.complex64), width=6, fill=b"0", precision=1)
    assert pair.tolist() == [b"(   inf,0001.0)"]


@given(st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False))
def test_numbers_survive_printing_and_parsing(whole: int, real: float) -> None:
    for value, out in ((np.int64(whole), DataType.INT64), (np.float64(real), DataType.DOUBLE)):
        attrs = {} if out == DataType.INT64 else {"scientific": True, "precision": 17}
        text = check_shapes("AsString", np.asarray(value), **attrs)
        assert same(check_shapes("StringToNumber", text, out_type=out), np.asarray(value))


@pytest.mark.parametrize(
    ("value", "attrs", "text"),
    [
        (np.float32(1.5), {}, b"1.500000"),
        (np.float32(1.5), {"width": 8, "precision": 3, "fill": "-"}, b"1.500   "),
        (np.float64(1e-7), {"shortest": True}, b"1e-07"),
        (np.int32(-5), {"width": 5, "fill": "0"}, b"-0005"),
        (np.uint8(200), {"fill": "+"}, b"200"),
        (np.complex64(1.5 + 2j), {"precision": 1}, b"(1.5,2.0)"),
        (np.bool_(True), {"width": 9}, b"true"),
        (np.array(b"a", object), {"width": 3}, b"  a"),
    ],
)
def test_printing_follows_printf(value: Any, attrs: dict[str, Any], text: bytes) -> None:
    assert run("AsString", value, **attrs).item() == text


@pytest.mark.parametrize("text", [b"abc", b"", b"1_0", b"3.0f", b"99999999999", b"1.5", b"0x10"])
def test_what_is_no_int32_is_refused(text: bytes) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        run("StringToNumber", scalar(text), out_type=DataType.INT32)
    assert caught.value.message == f"StringToNumberOp could not correctly convert string: {text.decode()}"


@given(vectors, st.booleans())
def test_base64_decodes_what_it_encoded(x: Array, pad: bool) -> None:
    assert same(check_shapes("DecodeBase64", check_shapes("EncodeBase64", x, pad=pad)), x)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"Y", "Base64 string length cannot be 1 modulo 4."),
        (b"Y+==", "Invalid character found in base64."),
        (b"YQ=", "Invalid character found in base64."),
    ],
)
def test_broken_base64_is_refused(text: bytes, message: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        run("DecodeBase64", texts(text))
    assert caught.value.message == message


def test_raw_bytes_are_numbers_in_either_order() -> None:
    x = texts(b"\1\0\2\0", b"\3\0\4\0")
    assert check_shapes("DecodeRaw", x, out_type=DataType.INT16).tolist() == [[1, 2], [3, 4]]
    assert run("DecodeRaw", x, out_type=DataType.INT16, little_endian=False).tolist() == [[256, 512], [768, 1024]]
    assert check_shapes("DecodePaddedRaw", texts(b"\1", b"\1\0\2"), np.int32(2), out_type=DataType.INT16).tolist() == [
        [1],
        [1],
    ]
    with pytest.raises(InvalidArgumentError, match="but element 1 has size 4 != 2"):
        run("DecodeRaw", texts(b"\1\0\2\0", b"\3\0"), out_type=DataType.INT16)
