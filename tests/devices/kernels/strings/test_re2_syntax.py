"""Translated patterns match what RE2 matches, and what RE2 refuses is refused in its words."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, strategies as st

from partita.devices.kernels.strings.re2_syntax import translated
from partita.errors import InvalidArgumentError, UnimplementedError

_CHARACTERS = st.characters(exclude_categories=["Cs"])


def _found(pattern: str, text: str) -> list[str]:
    return [found[0] for found in re.finditer(translated(pattern), text, re.ASCII)]


@given(st.text(_CHARACTERS, max_size=5), _CHARACTERS)
def test_quoted_text_matches_just_itself(text: str, other: str) -> None:
    if r"\E" in text:
        return
    pattern = translated(rf"\Q{text}\E\z")
    assert re.match(pattern, text, re.ASCII)
    assert not re.match(pattern, text + other, re.ASCII)


@given(_CHARACTERS, st.sampled_from(["\\d", "\\pL", "\\p{Greek}", "[:alpha:]", "a-f", "\\x{e0}-\\x{ff}", "\\W"]))
def test_a_character_matches_a_class_or_the_class_negated(character: str, members: str) -> None:
    pair = (f"[{members}]", f"[^{members}]")
    assert sum(bool(re.fullmatch(translated(pattern), character)) for pattern in pair) == 1
    assert all(not re.fullmatch(translated(pattern), "\udcff") for pattern in pair)


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        (r"\p{Lu}\p{Ll}*|\pN", "Hello caf\u00e9 \u00c9t\u00c9 \u0663", ["Hello", "\u00c9t", "\u00c9", "\u0663"]),
        (r"[\p{P}]|[\x{4E00}-\x{9FFF}]", "a, \u4f60b!", [",", "\u4f60", "!"]),
        (r"\p{^L}\P{^L}", "1a b", ["1a", " b"]),
        (r"[^\p{L}\d]+", "ab, 1 \u03b1-", [", ", " ", "-"]),
        (r"[[:^alpha:]]", "a1-", ["1", "-"]),
        (r"[\d-z]", "3-az", ["3", "-", "z"]),
        (r"[]a][^]a]", "]b a]", ["]b"]),
        (r"x{,3}{", "xx{,3}{", ["x{,3}{"]),
        (r"\s+", "a \t\v\r", [" \t", "\r"]),
        (r"\101\x42\x{43}\_\t", "ABC_\t", ["ABC_\t"]),
        (r"(?i)k\w", "\u212a\u017f kS", ["\u212a\u017f", "kS"]),
        (r"(?i)[^k]", "kK\u212ax", ["x"]),
        (r"a(?i:b)c(?i)d", "aBcD abCd", ["aBcD"]),
        (r"(a(?i)b|c)d", "aBd Cd CD", ["aBd", "Cd"]),
        (r"(?U)l+|o+?", "llo oo", ["l", "l", "o", "oo"]),
        (r"(?m)^a$", "a\nb\na", ["a", "a"]),
        (r"(?s-s).", "a\n", ["a"]),
        (r"^*a\B", "aa", ["a"]),
        (r"(?P<1n>a)\z", "aa", ["a"]),
        (r"\Bx*", "", [""]),
    ],
)
def test_patterns_find_what_re2_finds(pattern: str, text: str, found: list[str]) -> None:
    assert _found(pattern, text) == found


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("a**", "bad repetition operator: **"),
        ("a{1,2}?+", "bad repetition operator: {1,2}?+"),
        ("a{2,1}", "invalid repetition size: {2,1}"),
        ("a{1001}", "invalid repetition size: {1001}"),
        ("a|*?", "no argument for repetition operator: *?"),
        ("(?i)*", "no argument for repetition operator: *"),
        ("(?=a)b", "invalid perl operator: (?="),
        ("(?i-s-m)a", "invalid perl operator: (?i-s-"),
        ("(?i-)a", "invalid perl operator: (?i-)"),
        ("(?i", "invalid perl operator: (?i"),
        ("(?P=n)", "invalid perl operator: (?P"),
        ("(?P<a-b>x)", "invalid named capture group: (?P<a-b>"),
        ("(?P<n", "invalid named capture group: (?P<n"),
        ("(?:a", "missing ): (?:a"),
        ("a)", "unexpected ): a)"),
        ("x[a-", "missing ]: [a-"),
        ("[b-a]", "invalid character class range: b-a"),
        ("[[:foo:]]", "invalid character class range: [:foo:]"),
        (r"[a-\d]", r"invalid escape sequence: \d"),
        (r"[\b]", r"invalid escape sequence: \b"),
        (r"(a)\1b", r"invalid escape sequence: \1"),
        (r"\Z", r"invalid escape sequence: \Z"),
        (r"\x4g", r"invalid escape sequence: \x4g"),
        (r"\x{zz}", r"invalid escape sequence: \x{z"),
        (r"\x{110000}", r"invalid escape sequence: \x{110000"),
        (r"\p{L", r"invalid character class range: \p{L"),
        (r"\p{Cn}", r"invalid character class range: \p{Cn}"),
        (r"\pQ", r"invalid character class range: \pQ"),
        (r"\p", r"invalid character class range: \p"),
        ("a\\", "trailing \\"),
        ("a\udcff", "invalid UTF-8"),
    ],
)
def test_what_re2_refuses_is_refused_in_its_words(pattern: str, why: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        translated(pattern)
    assert caught.value.message == f"Invalid pattern: {pattern}, error: {why}"


@pytest.mark.parametrize("pattern", [r"\C", r"\p{Nushu}"])
def test_bytes_and_rare_scripts_are_refused(pattern: str) -> None:
    with pytest.raises(UnimplementedError):
        translated(pattern)
