"""Suggests what was meant by a name that does not exist, as the end of an error text.

    suggestion("lable", ["labels", "loss"])     "; did you mean 'labels'?"
    suggestion("zzz", ["labels", "loss"])       "; known are labels, loss"

The result depends on the words alone. Comparing letter by letter is slow, so of very many names only those that share
one half with the word are compared: a million names take a second or two.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

_CUTOFF = 0.6  # of difflib's ratio: how alike two words are, 0 to 1
_COMPARED = 2000  # names that are compared letter by letter; a millisecond for a hundred
_LISTED = 8


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that is most like `word`, or None if none is similar.

    A word that differs only by case, or by scopes in front ("loss" for "model/loss"), is preferred to one that differs
    by letters.
    """
    from difflib import get_close_matches  # imported late: only errors need it

    names = list(known)
    lower, last = word.lower(), word.rpartition("/")[2]
    for is_meant in (
        lambda name: name.lower() == lower,
        lambda name: name.rpartition("/")[2] == word or name == last,
    ):
        match = next(filter(is_meant, names), None)
        if match is not None:
            return match
    if len(names) > _COMPARED:
        names = list(islice((name for name in names if _may_be_meant(word, name)), _COMPARED))
    close = get_close_matches(word, names, n=1, cutoff=_CUTOFF)
    return close[0] if close else None


def _may_be_meant(word: str, name: str) -> bool:
    """A quick test: similar length, and one half of the letters equal, since a slip is in the other half."""
    half = (len(word) + 1) // 2
    return abs(len(word) - len(name)) <= 2 and (name.startswith(word[:half]) or name.endswith(word[-half:]))


def meant(word: str, known: Iterable[str]) -> str:
    """ "; did you mean 'x'?" for the known word that is most like `word`, "" if none is similar."""
    match = nearest(word, known)
    return "" if match is None else f"; did you mean {match!r}?"


def suggestion(word: str, known: Iterable[str]) -> str:
    """The end of an error text: "; did you mean 'x'?" for the nearest known word, else a list of some known words."""
    names = list(known)
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return meant(word, names) or f"; known are {', '.join(names[:_LISTED])}{more}"
