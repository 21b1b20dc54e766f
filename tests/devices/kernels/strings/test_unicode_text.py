"""Unicode kernels: round trips, Python's codecs, and TensorFlow's results for ill-formed bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.devices.kernels.strings.each_string import strings
from partita.errors import InvalidArgumentError
from tests.devices.kernels.harness import check_shapes, run

TEXTS = st.lists(st.text(max_size=6), max_size=5)


@given(TEXTS, st.sampled_from(["UTF-8", "UTF-16-BE", "UTF-32-BE"]))
def test_decoding_undoes_encoding(texts: list[str], encoding: str) -> None:
    """Code points and row splits of encoded texts are those of the texts."""
    values = np.array([ord(c) for text in texts for c in text], np.int32)
    splits = np.cumsum([0, *map(len, texts)]).astype(np.int64)
    encoded = check_shapes("UnicodeEncode", values, splits, output_encoding=encoding)
    assert encoded.tolist() == [text.encode(encoding) for text in texts]
    again, points = check_shapes("UnicodeDecode", encoded, input_encoding=encoding)
    assert (again.tolist(), points.tolist()) == (splits.tolist(), values.tolist())
    utf8 = check_shapes("UnicodeTranscode", encoded, input_encoding=encoding, output_encoding="UTF-8")
    assert utf8.tolist() == [text.encode() for text in texts]


@pytest.mark.parametrize(
    ("value", "points"),
    [
        (b"a\xc3\xa9", [97, 233]),
        (b"\xff\xfeab", [0xFFFD, 0xFFFD, 97, 98]),
        (b"\xe2\x82a", [0xFFFD, 97]),
        (b"\xed\xa0\x80", [0xFFFD] * 3),
        (b"\xc0\x80", [0xFFFD] * 2),
        (b"\x01\x7f\n", [1, 127, 10]),
    ],
)
def test_each_ill_formed_part_is_replaced_once(value: bytes, points: list[int]) -> None:
    """The results are TensorFlow's."""
    assert run("UnicodeDecode", strings([value], (1,)), input_encoding="UTF-8")[1].tolist() == points


def test_ill_formed_parts_may_be_left_out_or_refused() -> None:
    """The attr `errors`; control characters count as ill-formed where they are to be replaced."""
    x = strings([b"a\xff\x01"], (1,))
    attrs: dict[str, Any] = {"input_encoding": "UTF-8", "output_encoding": "UTF-8", "replace_control_characters": True}
    assert run("UnicodeTranscode", x, errors="ignore", **attrs).tolist() == [b"a"]
    assert run("UnicodeTranscode", x, errors="replace", replacement_char=63, **attrs).tolist() == [b"a??"]
    with pytest.raises(InvalidArgumentError, match="Invalid formatting on input string"):
        run("UnicodeTranscode", x, errors="strict", **attrs)
    with pytest.raises(InvalidArgumentError, match="Could not create converter for input encoding: nope"):
        run("UnicodeDecode", x, input_encoding="nope")
    assert run("UnicodeDecode", strings([b"a\x01"], (1,)), input_encoding="UTF-8", errors="strict",
               replace_control_characters=True)[1].tolist() == [97, 0xFFFD]  # fmt: skip


@pytest.mark.parametrize(
    ("splits", "message"),
    [
        ([], "Input_splits should contain elements"),
        ([1, 2], "First value in input_splits must be zero"),
        ([0, 3], "Last value in input_splits must be equal"),
        ([0, 2, 1, 2], "must be equal or in ascending order"),
    ],
)
def test_splits_must_divide_the_code_points(splits: list[int], message: str) -> None:
    """The error has TensorFlow's words."""
    with pytest.raises(InvalidArgumentError, match=message):
        run("UnicodeEncode", np.array([97, 98], np.int32), np.array(splits, np.int64), output_encoding="UTF-8")


def test_scripts_of_code_points() -> None:
    """In ICU's numbering, as TensorFlow gives them."""
    points = [97, 0x3B1, 0x4E00, 48, 0x1F600, -1, 0x110000, 0x0E01, 0x430, 0x5D0, 0x627, 0xAC00, 0x3042, 0x30A2, 0x300]
    scripts = [25, 14, 17, 0, 0, -1, -1, 38, 8, 19, 2, 18, 20, 22, 1]
    assert check_shapes("UnicodeScript", np.array(points, np.int32)).tolist() == scripts
    assert run("UnicodeScript", np.int32(0xE000)) == 103


def decode_with_offsets(values: list[bytes], encoding: str, **attrs: Any) -> list[list[int]]:
    """Splits, code points, and the bytes at which characters begin."""
    x = strings(values, (len(values),))
    return [part.tolist() for part in check_shapes("UnicodeDecodeWithOffsets", x, input_encoding=encoding, **attrs)]


@given(st.lists(st.text(max_size=6), max_size=3), st.sampled_from(["UTF-8", "UTF-16-BE", "UTF-32-BE", "UTF-16"]))
def test_characters_begin_where_the_text_before_ends(texts: list[str], encoding: str) -> None:
    """A byte order mark is no character."""
    splits, points, starts = decode_with_offsets([text.encode(encoding) for text in texts], encoding)
    assert splits == np.cumsum([0, *map(len, texts)]).tolist()
    assert points == [ord(char) for text in texts for char in text]
    assert (
        starts == [len(text[:i].encode(encoding)) for text in texts for i in range(len(text))] or encoding == "UTF-16"
    )


def test_starts_of_ill_formed_parts() -> None:
    """Those that are left out leave gaps. TensorFlow 2.21 gives these."""
    value = b"a\xc3\xa9\xff\xe4\xb8\xad\xf0\x9f\x98\x80z"
    assert decode_with_offsets([value, b"\xe4\xb8a"], "UTF-8")[1:] == [
        [97, 233, 65533, 20013, 128512, 122, 65533, 97],
        [0, 1, 3, 4, 7, 11, 0, 2],
    ]
    assert decode_with_offsets([value], "UTF-8", errors="ignore")[2] == [0, 1, 4, 7, 11]
    with pytest.raises(InvalidArgumentError, match="Invalid formatting on input string"):
        decode_with_offsets([value], "UTF-8", errors="strict")
