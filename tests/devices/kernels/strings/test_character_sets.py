"""Sets of characters obey the laws of sets, and names give the characters that Unicode has."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given, strategies as st

from partita.devices.kernels.strings.character_sets import LAST, CharacterRanges, complement, folded, named, union

_CODES = st.integers(0, LAST)
_SETS = st.lists(st.tuples(_CODES, _CODES).map(lambda pair: (min(pair), max(pair))), max_size=5).map(union)
_LETTERS = st.sampled_from("aZk\u00e9\u00c9\u03c3\u00df1-\u4f60").map(lambda c: ((ord(c), ord(c)),))


def _has(characters: CharacterRanges, code: int) -> bool:
    return any(first <= code <= last for first, last in characters)


@given(_SETS, _CODES)
def test_every_character_but_surrogates_is_in_a_set_or_in_its_complement(
    characters: CharacterRanges, code: int
) -> None:
    is_surrogate = 0xD800 <= code <= 0xDFFF
    assert _has(characters, code) + _has(complement(characters), code) == (not is_surrogate)
    assert complement(complement(characters)) == characters
    assert all(after > last + 1 for (_, last), (after, _) in pairwise(characters))


@given(_LETTERS)
def test_folding_twice_adds_nothing_and_all_forms_fold_alike(letter: CharacterRanges) -> None:
    forms = folded(letter)
    assert folded(forms) == forms
    assert all(folded(((code, code),)) == forms for first, last in forms for code in range(first, last + 1))


def test_letters_fold_to_their_forms_in_all_languages_but_turkic_ones() -> None:
    assert folded(((0x3C3, 0x3C3),)) == ((0x3A3, 0x3A3), (0x3C2, 0x3C3))  # two small sigmas
    assert folded(((0xDF, 0xDF),)) == ((0xDF, 0xDF), (0x1E9E, 0x1E9E))
    assert [folded(((code, code),)) for code in (0x130, 0x131)] == [((0x130, 0x130),), ((0x131, 0x131),)]


def test_a_category_is_all_of_its_parts_and_unknown_names_have_no_set() -> None:
    parts = [named(kind) or () for kind in ("Lu", "Ll", "Lt", "Lm", "Lo")]
    assert named("L") == union(span for part in parts for span in part)
    assert named("Zl") == ((0x2028, 0x2028),)
    assert named("Braille") == ((0x2800, 0x28FF),)
    assert named("Any") == ((0, 0xD7FF), (0xE000, LAST))
    assert [named(name) for name in ("Cn", "Foo", "greek", "")] == [None] * 4
    assert named("Cs") == ()
