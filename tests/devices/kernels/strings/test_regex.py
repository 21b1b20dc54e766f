"""Kernels that match and rewrite strings by regular expressions mean what RE2 means."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from partita.devices.kernels.strings.regex import compiled, replaced
from partita.errors import InvalidArgumentError, UnimplementedError
from tests.devices.kernels.harness import check_shapes, run
from tests.devices.kernels.random_arrays import texts
from tests.devices.kernels.strings.text_tensors import scalar


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
        (rb"\pL+", rb"<\0>", "\u00e9a 1".encode(), "<\u00e9a> 1".encode()),
        (b"[^0-9]", b"", b"a1b22 c", b"122"),
        (b"[]a]*", b"-", b"ab", b"-b-"),
        (b"b|", b"-", b"abc", b"-a-c-"),
        (rb"\w+(\d)(z)?", rb"<\1\2>\\", b"ab12 c", b"<2>\\ c"),
    ],
)
def test_rewriting_means_what_re2_says(pattern: bytes, rewrite: bytes, before: bytes, after: bytes) -> None:
    assert run("RegexReplace", texts(before), scalar(pattern), scalar(rewrite)).tolist() == [after]
    assert run("StaticRegexReplace", texts(before), pattern=pattern, rewrite=rewrite).tolist() == [after]


@given(
    st.sampled_from([b"[ab]", b"a+", b"[]a]*", b"a(b)?", b"a|b", b"ab*", rb"\w", b"[^a]b?", b"a?b", b" ", b"b{0}a*"]),
    st.sampled_from([b"", b"x", rb"<\0>", rb"\\"]),
    st.text("ab ]\u00e9", max_size=6),
    st.booleans(),
)
def test_the_fast_way_is_the_slow_way(pattern: bytes, rewrite: bytes, text: str, everywhere: bool) -> None:
    """Python's `sub` is only asked where it does what `replaced` does."""
    rewrites: dict[bytes, list[str | int]] = {b"": [""], b"x": ["x"], rb"<\0>": ["<", 0, ">"], rb"\\": ["\\"]}
    value = text.encode()
    expected = replaced(value, compiled(pattern), rewrites[rewrite], everywhere)
    found = run("StaticRegexReplace", texts(value), pattern=pattern, rewrite=rewrite, replace_global=everywhere)
    assert found.tolist() == [expected]


def test_matching_takes_the_whole_string_and_bad_patterns_are_refused() -> None:
    x = texts(b"abc", b"abcd", b"a\nc")
    assert check_shapes("RegexFullMatch", x, scalar(b"a.c")).tolist() == [True, False, False]
    assert check_shapes("StaticRegexFullMatch", x, pattern=b"(?s)a.c").tolist() == [True, False, True]
    with pytest.raises(InvalidArgumentError) as caught:
        run("RegexFullMatch", x, scalar(b"("))
    assert caught.value.message == "Invalid pattern: (, error: missing ): ("
    with pytest.raises(UnimplementedError):
        run("RegexFullMatch", x, scalar(rb"\C"))
