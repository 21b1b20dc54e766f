r"""RE2's regular expressions become expressions of Python's `re` of the same meaning, or the error that RE2 gives.

Python's engine tries alternatives in RE2's order, so only the notation is translated, in one pass from left to right.
Flags are resolved on the way, and every class is written as the characters it has, since Python's classes have others:

    (?i)k+?              [Kk\u212a]+?              all forms of k; the third is the sign of kelvin
    (?U)a+x{,3}          a+?x\{,3\}                ungreedy by a flag; RE2 reads this brace as itself
    [\d_[:^word:]]$      (?:[\x00-\x5e...])(?:\Z)   no surrogates, so no bytes that are not UTF-8
"""

from __future__ import annotations

import re

from ....errors import InvalidArgumentError, UnimplementedError
from .character_sets import LAST, CharacterRanges, complement, folded, named, union


def _spans(text: str) -> CharacterRanges:
    """The set of pairs of characters, each first and last of a range."""
    return union((ord(first), ord(last)) for first, last in zip(text[::2], text[1::2], strict=True))


_POSIX = {
    "alnum": _spans("09AZaz"),
    "alpha": _spans("AZaz"),
    "ascii": _spans("\x00\x7f"),
    "blank": _spans("\t\t  "),
    "cntrl": _spans("\x00\x1f\x7f\x7f"),
    "digit": _spans("09"),
    "graph": _spans("!~"),
    "lower": _spans("az"),
    "print": _spans(" ~"),
    "punct": _spans("!/:@[`{~"),
    "space": _spans("\t\r  "),
    "upper": _spans("AZ"),
    "word": _spans("09AZaz__"),
    "xdigit": _spans("09AFaf"),
}
_PERL = {"d": _POSIX["digit"], "s": _spans("\t\n\f\r  "), "w": _POSIX["word"]}
_ASSERTIONS = {"A": r"(?:\A)", "z": r"(?:\Z)", "b": r"(?:\b)", "B": r"(?!\b)"}  # groups, since RE2 lets them repeat
_LETTERS = {"n": "\n", "r": "\r", "t": "\t", "a": "\a", "f": "\f", "v": "\v"}
_FLAGS = frozenset("imsU")
_MOST_REPEATS = 1000
_COUNT = re.compile(r"\{([0-9]+)(?:(,)([0-9]*))?\}")
_OCTAL = re.compile(r"\\(0[0-7]{0,2}|[1-7][0-7]{1,2})")
_HEX = re.compile(r"\\x(?:\{([0-9A-Fa-f]+)\}|([0-9A-Fa-f]{2}))")
_WRONG_HEX = re.compile(r"\\x(?:\{[0-9A-Fa-f]*[^0-9A-Fa-f}]?|.{0,2})", re.DOTALL)


def translated(pattern: str) -> str:
    """The expression for Python's `re`, with its flag ASCII; InvalidArgumentError where RE2 refuses the pattern."""
    return _Translation(pattern).run()


class _Translation:
    """A pattern, how far it is read, and what came of that."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.pieces: list[str] = []
        self.flags: frozenset[str] = frozenset()
        self.outer_flags: list[frozenset[str]] = []  # of each open group, the flags around it
        self.has_operand = False  # is there something that an operator here would repeat
        self.last_repetition: int | None = None  # where the operator begins that ends here

    def run(self) -> str:
        if any("\ud800" <= c <= "\udfff" for c in self.text):
            raise self.error("invalid UTF-8")
        while self.at < len(self.text):
            self.next()
        if self.outer_flags:
            raise self.error(f"missing ): {self.text}")
        return "".join(self.pieces)

    def error(self, why: str) -> InvalidArgumentError:
        return InvalidArgumentError(f"Invalid pattern: {self.text}, error: {why}")

    def next(self) -> None:
        """One more element of the pattern."""
        c = self.text[self.at]
        if c in "*+?" or (c == "{" and _COUNT.match(self.text, self.at)):
            self.repetition()
            return
        self.last_repetition = None
        if c == "\\":
            self.escape()
        elif c == "(":
            self.open_group()
        elif c == ")":
            self.close_group()
        elif c == "[":
            self.item(_written(self.bracket()))
        else:
            self.at += 1
            self.plain(c)

    def item(self, piece: str) -> None:
        """Something that can be repeated."""
        self.pieces.append(piece)
        self.has_operand = True

    def plain(self, c: str) -> None:
        """A character that needs no other to be understood."""
        if c == "|":
            self.pieces.append("|")
            self.has_operand = False
        elif c == ".":
            self.item(_written(complement(() if "s" in self.flags else _spans("\n\n"))))
        elif c == "^":
            self.item("(?m:^)" if "m" in self.flags else r"(?:\A)")
        elif c == "$":
            self.item("(?m:$)" if "m" in self.flags else r"(?:\Z)")
        else:
            self.literal(ord(c))

    def literal(self, code: int) -> None:
        self.item(_written(self.cased(((code, code),))) if "i" in self.flags else _character(code))

    def cased(self, characters: CharacterRanges) -> CharacterRanges:
        """The set, with all forms of its letters where case is ignored."""
        return folded(characters) if "i" in self.flags else characters

    def repetition(self) -> None:
        """An operator that repeats what is before it."""
        begin = self.at
        count = _COUNT.match(self.text, begin)
        self.at = count.end() if count else begin + 1
        operator = self.text[begin : self.at]
        is_lazy = self.text.startswith("?", self.at)
        self.at += is_lazy
        if self.last_repetition is not None:
            raise self.error(f"bad repetition operator: {self.text[self.last_repetition : self.at]}")
        if count and not _is_size(count):
            raise self.error(f"invalid repetition size: {self.text[begin : self.at]}")
        if not self.has_operand:
            raise self.error(f"no argument for repetition operator: {self.text[begin : self.at]}")
        self.item(operator + "?" * (is_lazy != ("U" in self.flags)))
        self.last_repetition = begin

    def open_group(self) -> None:
        """The head of a group."""
        if not self.text.startswith("(?", self.at):
            self.begin_group("(", self.at + 1)
        elif self.text.startswith("(?P<", self.at):
            self.named_group()
        else:
            self.flag_group()

    def flag_group(self) -> None:
        """(?i) sets flags to the end of the group around it, (?i:...) inside of its own."""
        begin, flags, is_off, has_letters = self.at, self.flags, False, False
        self.at += 2
        while (c := self.text[self.at : self.at + 1]) not in (":", ")") or (is_off and not has_letters):
            self.at += 1
            if c == "-" and not is_off:
                is_off, has_letters = True, False
            elif c in _FLAGS:
                flags, has_letters = (flags - {c} if is_off else flags | {c}), True
            else:
                raise self.error(f"invalid perl operator: {self.text[begin : self.at]}")
        if c == ":":
            self.begin_group("(?:", self.at + 1)
        else:
            self.at += 1
        self.flags = flags

    def begin_group(self, head: str, after: int) -> None:
        self.pieces.append(head)
        self.outer_flags.append(self.flags)
        self.at, self.has_operand = after, False

    def named_group(self) -> None:
        """A group with a name, which no kernel asks for."""
        end = self.text.find(">", self.at) + 1
        if not end or not re.fullmatch(r"\w+", self.text[self.at + 4 : end - 1]):
            raise self.error(f"invalid named capture group: {self.text[self.at : end or None]}")
        self.begin_group("(", end)

    def close_group(self) -> None:
        if not self.outer_flags:
            raise self.error(f"unexpected ): {self.text}")
        self.flags = self.outer_flags.pop()
        self.at += 1
        self.item(")")

    def escape(self) -> None:
        r"""A backslash and what belongs to it, outside of brackets."""
        kind = self.text[self.at + 1 : self.at + 2]
        if kind == "Q":
            quoted, _, _ = self.text[self.at + 2 :].partition(r"\E")
            self.at = min(self.at + 2 + len(quoted) + 2, len(self.text))
            for c in quoted:
                self.literal(ord(c))
        elif kind in _ASSERTIONS:
            self.at += 2
            self.item(_ASSERTIONS[kind])
        elif kind == "C":
            raise UnimplementedError(rf"Pattern {self.text!r} uses \C, single bytes, which Partita does not have")
        else:
            characters = self.escaped_set()
            if characters is None:
                self.literal(self.escaped_character())
            else:
                self.item(_written(characters))

    def escaped_set(self) -> CharacterRanges | None:
        r"""The set that \d, \pL and the like stand for; None where something else is next."""
        if not self.text.startswith("\\", self.at):
            return None
        kind = self.text[self.at + 1 : self.at + 2]
        if kind and kind in "pP":
            return self.unicode_set()
        if kind.lower() not in _PERL:
            return None
        self.at += 2
        characters = self.cased(_PERL[kind.lower()])
        return complement(characters) if kind.isupper() else characters

    def unicode_set(self) -> CharacterRanges:
        r"""\pN, \p{Greek}, \P{L}, \p{^L}."""
        begin, is_without = self.at, self.text[self.at + 1] == "P"
        braced = self.text.startswith("{", begin + 2)
        end = self.text.find("}", begin) + 1 if braced else begin + 3
        name = self.text[begin + 3 : end - 1] if braced else self.text[begin + 2 : end]
        characters = named(name.removeprefix("^")) if end and name else None
        if characters is None:
            if end and len(name) > 2:
                raise UnimplementedError(f"Pattern {self.text!r} uses the class {name!r}, which Partita does not have")
            raise self.error(f"invalid character class range: {self.text[begin : end or None]}")
        self.at = end
        characters = self.cased(characters)
        return complement(characters) if is_without != name.startswith("^") else characters

    def escaped_character(self) -> int:
        r"""The character that \n, \x41, \101, \. and the like stand for."""
        begin = self.at
        found = _OCTAL.match(self.text, begin)
        code = int(found[1], 8) if found else -1
        if not found and (found := _HEX.match(self.text, begin)):
            code = int(found[1] or found[2], 16)
        if not found:
            return self.escaped_letter()
        self.at = found.end()
        if code > LAST:
            raise self.error(f"invalid escape sequence: {found[0].removesuffix('}')}")
        return code

    def escaped_letter(self) -> int:
        r"""As `escaped_character`, of one character that has a meaning, or none and is itself."""
        c = self.text[self.at + 1 : self.at + 2]
        if not c:
            raise self.error("trailing \\")
        if c not in _LETTERS and (c.isalnum() or not c.isascii()):
            wrong = _WRONG_HEX.match(self.text, self.at)
            raise self.error(f"invalid escape sequence: {wrong[0] if wrong else self.text[self.at : self.at + 2]}")
        self.at += 2
        return ord(_LETTERS.get(c, c))

    def bracket(self) -> CharacterRanges:
        """The set between square brackets."""
        begin = self.at
        is_negated = self.text.startswith("[^", begin)
        self.at = first = begin + 1 + is_negated
        ranges: list[tuple[int, int]] = []
        while self.at == first or not self.text.startswith("]", self.at):
            ranges += self.posix_set() or self.escaped_set() or self.cased(self.range_in_bracket(begin))
        self.at += 1
        return complement(union(ranges)) if is_negated else union(ranges)

    def posix_set(self) -> CharacterRanges | None:
        """[:alpha:], [:^alpha:]; None where something else is next."""
        end = self.text.find(":]", self.at + 2) + 2 if self.text.startswith("[:", self.at) else 1
        if end == 1:
            return None
        name = self.text[self.at + 2 : end - 2]
        if name.removeprefix("^") not in _POSIX:
            raise self.error(f"invalid character class range: {self.text[self.at : end]}")
        self.at = end
        characters = self.cased(_POSIX[name.removeprefix("^")])
        return complement(characters) if name.startswith("^") else characters

    def range_in_bracket(self, bracket: int) -> CharacterRanges:
        """A character, or two with a hyphen between them."""
        begin = self.at
        first = last = self.character_in_bracket(bracket)
        if self.text[self.at : self.at + 1] == "-" and self.text[self.at + 1 : self.at + 2] not in ("", "]"):
            self.at += 1
            last = self.character_in_bracket(bracket)
        if last < first:
            raise self.error(f"invalid character class range: {self.text[begin : self.at]}")
        return ((first, last),)

    def character_in_bracket(self, bracket: int) -> int:
        if self.at == len(self.text):
            raise self.error(f"missing ]: {self.text[bracket:]}")
        if self.text[self.at] == "\\":
            return self.escaped_character()
        self.at += 1
        return ord(self.text[self.at - 1])


def _is_size(count: re.Match[str]) -> bool:
    """Are these as few repetitions as RE2 allows, and the most not fewer than the least?"""
    least, most = int(count[1]), int(count[3] or count[1])
    return least <= most <= _MOST_REPEATS


def _character(code: int) -> str:
    c = chr(code)
    return c if c.isascii() and c.isalnum() else f"\\U{code:08x}"


def _written(characters: CharacterRanges) -> str:
    """A class of Python's that has just these characters."""
    if not characters:
        return "(?!)"
    spans = (_character(a) if a == b else f"{_character(a)}-{_character(b)}" for a, b in characters)
    return f"[{''.join(spans)}]"
