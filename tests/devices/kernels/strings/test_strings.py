"""Strings: joined, cut, split, cased, parsed, printed, matched and hashed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from partita.devices.kernels.strings.hashing import farm_fingerprint, murmur_64, sip_hash
from partita.errors import InvalidArgumentError, OutOfRangeError, UnimplementedError
from partita.graph.dtypes import Array, DataType
from tests.devices.kernels.harness import check_shapes, run, shapes
from tests.devices.kernels.random_arrays import ints, same, texts

MATRIX = np.array([[b"a", b"b"], [b"c", b"d"]], object)
vectors = st.lists(st.binary(max_size=6), max_size=5).map(lambda values: texts(*values))
characters = st.lists(st.text(max_size=5), max_size=4).map(lambda values: texts(*(v.encode() for v in values)))


def scalar(value: bytes) -> Array:
    """A string without axes."""
    return np.array(value, object)


@given(vectors, st.binary(max_size=2))
def test_joining_puts_the_separator_between_and_scalars_everywhere(x: Array, separator: bytes) -> None:
    made = check_shapes("StringJoin", [x, scalar(b"!"), x], separator=separator)
    assert made.tolist() == [separator.join((v, b"!", v)) for v in x.tolist()]
    one = check_shapes("ReduceJoin", x, ints(0), separator=separator)
    assert one.item() == separator.join(x.tolist())


def test_reduce_join_runs_fastest_along_the_axis_listed_first() -> None:
    assert check_shapes("ReduceJoin", MATRIX, ints(0, 1), separator="-").item() == b"a-c-b-d"
    assert check_shapes("ReduceJoin", MATRIX, ints(-1, 0), keep_dims=True).tolist() == [[b"abcd"]]
    with pytest.raises(OutOfRangeError, match="Invalid reduction dimension 2 for input with 2"):
        run("ReduceJoin", MATRIX, ints(2))
    with pytest.raises(InvalidArgumentError, match="Duplicate reduction dimension 0"):
        run("ReduceJoin", MATRIX, ints(0, 0))


@given(characters, st.integers(-6, 6), st.integers(0, 4))
def test_characters_are_cut_and_counted_as_python_does(x: Array, first: int, count: int) -> None:
    strings = [v.decode() for v in x.tolist()]
    assert check_shapes("StringLength", x, unit="UTF8_CHAR").tolist() == [len(v) for v in strings]
    assert check_shapes("StringLength", x).tolist() == [len(v) for v in x.tolist()]
    if all(-len(v) <= first <= len(v) for v in strings):
        starts = [first + len(v) if first < 0 else first for v in strings]
        expected = [v[s : s + count].encode() for v, s in zip(strings, starts, strict=True)]
        made = check_shapes("Substr", x, np.int32(first), np.int32(count), unit="UTF8_CHAR")
        assert made.tolist() == expected


def test_a_position_outside_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="pos 10 out of range for string b'hello' at index 0"):
        run("Substr", texts(b"hello"), np.int32(10), np.int32(1))
    with pytest.raises(InvalidArgumentError, match="pos and len should have the same shape"):
        run("Substr", texts(b"hello"), ints(0, 1), ints(1))


def test_case_changes_ascii_letters_or_all_of_utf8() -> None:
    x = texts("aÉß".encode(), b"\xffA")
    assert check_shapes("StringLower", x).tolist() == ["aÉß".encode(), b"\xffa"]
    assert check_shapes("StringUpper", x, encoding="utf-8").tolist() == ["AÉSS".encode(), "\ufffdA".encode()]
    assert check_shapes("StringStrip", texts(b" \ta b\n", "\u00a0x ".encode())).tolist() == [b"a b", "\u00a0x".encode()]


@given(
    st.lists(st.text("ab ,", max_size=8), min_size=1, max_size=4), st.sampled_from(["", ",", "ab"]), st.integers(-1, 0)
)
def test_splitting_is_pythons(lines: list[str], separator: str, most: int) -> None:
    x = texts(*(line.encode() for line in lines))
    indices, tokens, shape = check_shapes("StringSplitV2", x, scalar(separator.encode()), maxsplit=most)
    expected = [[line] if most == 0 else line.split(separator or None) for line in lines]
    assert tokens.tolist() == [token.encode() for row in expected for token in row]
    assert indices.tolist() == [[i, k] for i, row in enumerate(expected) for k in range(len(row))]
    assert shape.tolist() == [len(lines), max(len(row) for row in expected)]


def test_split_keeps_the_rest_after_the_last_allowed_split() -> None:
    assert run("StringSplitV2", texts(b"a,b,c"), scalar(b","), maxsplit=1)[1].tolist() == [b"a", b"b,c"]
    assert run("StringSplitV2", texts(b" a  b c "), scalar(b""), maxsplit=1)[1].tolist() == [b"a", b"b c "]
    assert run("StringSplit", texts(b"a,b;c", b""), scalar(b",;"))[1].tolist() == [b"a", b"b", b"c"]
    assert run("StringSplit", texts(b"a,,b"), scalar(b","), skip_empty=False)[1].tolist() == [b"a", b"", b"b"]
    assert run("StringSplit", texts(b"ab"), scalar(b""))[1].tolist() == [b"a", b"b"]


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


@pytest.mark.parametrize(
    ("pattern", "rewrite", "before", "after"),
    [
        (b"X", rb"[\0]", b"aXbX", b"a[X]b[X]"),
        (b"x*", b"-", b"abxd", b"-a-b-d-"),
        (b"foo$", b"E", b"foo\n", b"foo\n"),
        (b"[[:alpha:]]+", b"w", b"ab 42", b"w 42"),
        (b".", b"x", "\u00e9\xff".encode("latin-1"), b"\xe9\xff"),
        (b".", b"x", "\u00e9".encode(), b"x"),
        (b"a", rb"\2", b"abc", b"abc"),
        (rb"\Qa.b\E", b"!", b"a.b axb", b"! axb"),
        (rb"(a)|b", rb"<\1>", b"ab", b"<a><>"),
        (rb"\.", rb"\\", b"a.b", b"a\\b"),
    ],
)
def test_rewriting_means_what_re2_says(pattern: bytes, rewrite: bytes, before: bytes, after: bytes) -> None:
    assert run("RegexReplace", texts(before), scalar(pattern), scalar(rewrite)).tolist() == [after]
    assert run("StaticRegexReplace", texts(before), pattern=pattern, rewrite=rewrite).tolist() == [after]


def test_matching_takes_the_whole_string_and_bad_patterns_are_refused() -> None:
    x = texts(b"abc", b"abcd", b"a\nc")
    assert check_shapes("RegexFullMatch", x, scalar(b"a.c")).tolist() == [True, False, False]
    assert check_shapes("StaticRegexFullMatch", x, pattern=b"(?s)a.c").tolist() == [True, False, True]
    with pytest.raises(InvalidArgumentError) as caught:
        run("RegexFullMatch", x, scalar(b"("))
    assert caught.value.message == "Invalid pattern: (, error: missing ): ("
    with pytest.raises(UnimplementedError):
        run("RegexFullMatch", x, scalar(rb"\pN"))


def test_hashes_are_the_published_ones() -> None:
    """Values of TensorFlow's three string hashes modulo 2**62, one for each length class of FarmHash."""
    lengths = {b"": 1936946117179621455, b"a": 3694432073954588131, b"hello world": 1769834696496558107}
    lengths |= {b"x" * 20: 3621402210320469444, b"y" * 50: 1536034821532487699, b"z" * 200: 4117204190001636188}
    assert {text: farm_fingerprint(text) % 2**62 for text in lengths} == lengths
    murmur = {b"": 105434511174508091, b"a": 2996632905371535868, b"hello world": 936430787915428847}
    assert {text: murmur_64(text) % 2**62 for text in murmur} == murmur
    sip = {b"": 443797209252341627, b"a": 546566331822570742, b"hello world": 1015233985318741638}
    assert {text: sip_hash(text, (1, 2)) % 2**62 for text in sip} == sip
    assert check_shapes("StringToHashBucketFast", texts(b"a"), num_buckets=2**62).tolist() == [lengths[b"a"]]
    assert check_shapes("StringToHashBucketStrong", texts(b"a"), num_buckets=2**62, key=[1, 2]).tolist() == [sip[b"a"]]
    fingerprint = check_shapes("Fingerprint", MATRIX, scalar(b"farmhash64"))
    assert fingerprint[0].tolist() == [122, 64, 59, 169, 136, 60, 55, 83]


def test_segments_and_ngrams_join_neighbours() -> None:
    x = texts(b"a", b"b", b"c")
    assert check_shapes("UnsortedSegmentJoin", x, ints(1, 0, 1), np.int32(3), separator="-").tolist() == [
        b"b",
        b"a-c",
        b"",
    ]
    grams, splits = check_shapes(
        "StringNGrams",
        x,
        np.array([0, 2, 3]),
        separator="|",
        ngram_widths=[2],
        left_pad="L",
        right_pad="R",
        pad_width=-1,
        preserve_short_sequences=False,
    )
    assert grams.tolist() == [b"L|a", b"a|b", b"b|R", b"L|c", b"c|R"]
    assert splits.tolist() == [0, 3, 5]


def test_shapes_of_tokens_are_open() -> None:
    assert shapes("StringSplitV2", (3,), ()) == [(None, 2), (None,), (2,)]
    assert shapes("StringJoin", [(None,), (3,)]) == [(3,)]
    assert shapes("ReduceJoin", (2, 3), (1,)) == [None]
