"""What was probably meant by a name that does not exist.

Flows in: the unknown word and the words there are. Flows out: the end of an error text. Always holds: the answer is the
same for the same words, and a million names are looked through in a second or two, since of very many only those
that share one half with the word are compared letter by letter.

    suggestion("lable", ["labels", "loss"])     "; did you mean 'labels'?"
    suggestion("zzz", ["labels", "loss"])       "; known are labels, loss"
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

_CUTOFF = 0.6  # of difflib's ratio: how alike two words are, 0 to 1
_COMPARED = 2000  # names that are compared letter by letter; a millisecond for a hundred
_LISTED = 8


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that is most like `word`, or None where none is.

    A word that differs only by case, or by the scopes before it ("loss" for "model/loss"), is taken before one that
    differs by letters.
    """
    from difflib import get_close_matches  # here: only a mistake needs it

    names = list(known)
    lower, last = word.lower(), word.rpartition("/")[2]
    for is_meant in (
        lambda name: name.lower() == lower,
        lambda name: name.rpartition("/")[2] == word or name == last,
    ):
        found = next(filter(is_meant, names), None)
        if found is not None:
            return found
    if len(names) > _COMPARED:
        names = list(islice((name for name in names if _may_be_meant(word, name)), _COMPARED))
    close = get_close_matches(word, names, n=1, cutoff=_CUTOFF)
    return close[0] if close else None


def _may_be_meant(word: str, name: str) -> bool:
    """A quick look: about as long, and one half of the letters the same, as a slip is in the other."""
    half = (len(word) + 1) // 2
    return abs(len(word) - len(name)) <= 2 and (name.startswith(word[:half]) or name.endswith(word[-half:]))


def meant(word: str, known: Iterable[str]) -> str:
    """ "; did you mean 'x'?" for the known word that is most like `word`, "" where none is."""
    found = nearest(word, known)
    return "" if found is None else f"; did you mean {found!r}?"


def suggestion(word: str, known: Iterable[str]) -> str:
    """The end of an error text: "; did you mean 'x'?" for the nearest known word, else some of the known ones."""
    names = list(known)
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return meant(word, names) or f"; known are {', '.join(names[:_LISTED])}{more}"
