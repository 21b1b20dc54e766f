"""Sets of characters: by Unicode's general categories and scripts, complements, all forms of a set in either case.

A set is a sorted tuple of ranges (first, last) of code points, both inside, which neither touch nor overlap. No set has
surrogates: UTF-8 has none, and in decoded strings they stand for bytes that are not UTF-8. For example

    union([(98, 99), (97, 97)])        ((97, 99),)                        b to c and a: a to c
    complement(((0, 64), (91, LAST)))  ((65, 90),)                        A to Z
    folded(((107, 107),))              ((75, 75), (107, 107), (8490, 8490))   k: K, k and the sign of kelvin
"""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from collections.abc import Iterable
from functools import cache, lru_cache
from itertools import groupby

from .unicode_text import script_runs

CharacterRanges = tuple[tuple[int, int], ...]
LAST = 0x10FFFF
_SURROGATES = (0xD800, 0xDFFF)
_DOTLESS_I, _I_WITH_DOT = 0x131, 0x130  # which only Turkic languages fold to i
_AFTER_LETTERS = 0x1E944  # no letter from here on has two cases
_UNASSIGNED = "Cn"
# In the order of ICU's numbers, from 0.
_SCRIPTS = """Common Inherited Arabic Armenian Bengali Bopomofo Cherokee Coptic Cyrillic
Deseret Devanagari Ethiopic Georgian Gothic Greek Gujarati Gurmukhi Han
Hangul Hebrew Hiragana Kannada Katakana Khmer Lao Latin Malayalam
Mongolian Myanmar Ogham Old_Italic Oriya Runic Sinhala Syriac Tamil
Telugu Thaana Thai Tibetan Canadian_Aboriginal Yi Tagalog Hanunoo Buhid
Tagbanwa Braille Cypriot Limbu Linear_B Osmanya Shavian Tai_Le Ugaritic""".split()  # noqa: SIM905 - a list would take a line for each


def union(ranges: Iterable[tuple[int, int]]) -> CharacterRanges:
    """All characters of any of these ranges, which may overlap and have surrogates."""
    merged: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(merged[-1][1], last))
        else:
            merged.append((first, last))
    below, above = _SURROGATES[0] - 1, _SURROGATES[1] + 1
    pieces = ((max(first, low), min(last, high)) for first, last in merged for low, high in ((0, below), (above, LAST)))
    return tuple((first, last) for first, last in pieces if first <= last)


def complement(ranges: CharacterRanges) -> CharacterRanges:
    """All characters that are not in the set."""
    firsts = [0, *(last + 1 for _, last in ranges)]
    lasts = [*(first - 1 for first, _ in ranges), LAST]
    return union((first, last) for first, last in zip(firsts, lasts, strict=True) if first <= last)


@lru_cache(maxsize=64)
def named(name: str) -> CharacterRanges | None:
    """The set of that name: Any, a general category or its first letter, or a script; None if there is no such name."""
    if name == "Any":
        return complement(())
    if name in _SCRIPTS:
        return union((first, last) for first, last, script in script_runs() if script == _SCRIPTS.index(name))
    runs = [(first, last) for first, last, kind in _category_runs() if name in (kind, kind[0])]
    return union(runs) if runs else None


@cache
def _category_runs() -> list[tuple[int, int, str]]:
    """Runs of assigned characters of one general category."""
    runs, first = [], 0
    for kind, run in groupby(map(unicodedata.category, map(chr, range(LAST + 1)))):
        after = first + sum(1 for _ in run)
        if kind != _UNASSIGNED:
            runs.append((first, after - 1, kind))
        first = after
    return runs


def folded(ranges: CharacterRanges) -> CharacterRanges:
    """The set with all characters that differ from one of its own in case only."""
    forms = _cases()
    others = (other for first, last in ranges for cased in forms if first <= cased <= last for other in forms[cased])
    return union([*ranges, *((other, other) for other in others)])


@cache
def _cases() -> dict[int, list[int]]:
    """Of each letter that has several, its forms in upper and lower case."""
    alike = defaultdict(list)
    for code in range(_AFTER_LETTERS):
        if code not in (_DOTLESS_I, _I_WITH_DOT):
            alike[_lower(chr(code))].append(code)
    return {code: forms for forms in alike.values() if len(forms) > 1 for code in forms}


def _lower(letter: str) -> str:
    """One lower case letter for all forms: that of the upper case, where both are one character each."""
    upper = letter.upper()
    letter = upper if len(upper) == 1 else letter
    lower = letter.lower()
    return lower if len(lower) == 1 else letter
