"""Kernels that match and rewrite strings by regular expressions of RE2's syntax, with Python's engine.

A pattern has RE2's meaning; syntax that only RE2 has (Unicode classes, ungreedy mode) raises UnimplementedError.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from ....errors import InvalidArgumentError, UnimplementedError
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array
from ..registry import Construction, Kernel, kernel
from .each_string import decoded, each, encoded, measured

_POSIX = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "ascii": "\\x00-\\x7F",
    "blank": "\\t ",
    "cntrl": "\\x00-\\x1F\\x7F",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": "!-/:-@\\[-`{-~",
    "space": "\\t\\n\\v\\f\\r ",
    "upper": "A-Z",
    "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}
_BOOL = np.dtype(np.bool_)
_INVALID = "\udc80-\udcff"  # invalid UTF-8, as `decoded` gives it: RE2 never matches it
# An escape, a POSIX class, the edges of a bracket, a dot, the end anchor, or the head of a group with flags.
_TOKEN = re.compile(
    r"\\Q.*?(?:\\E|$)|\\.|\[:\w+:\]|\[\^?\]?|\]|\.|\$|\(\?[A-Za-z-]+[:)]|[^\\\[\].$(]+|\(|\\", re.DOTALL
)


def _translated(pattern: str) -> str:
    """The pattern in the syntax of Python's `re`, where the two differ."""
    pieces: list[str] = []
    in_class, flags = False, ""
    for token in _TOKEN.findall(pattern):
        if token.startswith("(?"):
            flags += token.partition("-")[0]
        if "U" in flags:
            raise UnimplementedError(f"Pattern {pattern!r} uses RE2's ungreedy mode, which Partita does not have")
        if token[:2] in ("\\p", "\\P", "\\C"):
            raise UnimplementedError(f"Pattern {pattern!r} uses {token[:2]}, which Partita does not have")
        pieces.append(_inside(token) if in_class else _outside(token, flags))
        if not in_class and token.startswith("[") and not token.startswith("[:"):
            in_class = True
        elif in_class and token == "]":
            in_class = False
    return "".join(pieces)


def _inside(token: str) -> str:
    """A token between square brackets."""
    if token.startswith("[:"):
        return _POSIX.get(token[2:-2], token)
    return "\\[" if token == "[" else token


def _outside(token: str, flags: str) -> str:
    """A token outside of brackets, after the given flags were set."""
    if token.startswith("\\Q"):
        return re.escape(token[2:].removesuffix("\\E"))
    if token.startswith("[^"):
        return f"[^{_INVALID}{token[2:]}" if token == "[^" else f"[^{_INVALID}\\]"
    if token == "$" and "m" in flags:
        return token
    dot = f"[^{_INVALID}]" if "s" in flags else f"[^\n{_INVALID}]"
    # Python's $ also matches before a final line break.
    return {"\\z": "\\Z", "$": "\\Z", ".": dot}.get(token, token)


def _re2_words(error: re.error, pattern: str) -> str:
    at = error.pos or 0
    if error.msg.startswith("missing )"):
        return f"missing ): {pattern}"
    if error.msg.startswith("unterminated character set"):
        return f"missing ]: {pattern[at:]}"
    if error.msg.startswith("nothing to repeat"):
        return f"no argument for repetition operator: {pattern[at : at + 1]}"
    return error.msg


@lru_cache(maxsize=256)
def compiled(pattern: bytes) -> re.Pattern[str]:
    """The compiled pattern; InvalidArgumentError where it is malformed."""
    text = decoded(pattern)
    try:
        return re.compile(_translated(text), re.ASCII)
    except re.error as error:
        raise InvalidArgumentError(f"Invalid pattern: {text}, error: {_re2_words(error, text)}") from error


def _rewritten(match: re.Match[str], parts: Sequence[str | int]) -> str:
    return "".join(part if isinstance(part, str) else match.group(part) or "" for part in parts)


def _parts(rewrite: str) -> tuple[list[str | int], bool]:
    """The rewrite as texts and group numbers, up to its first wrong escape, and whether all escapes are right."""
    parts: list[str | int] = []
    for text, escape in re.findall(r"([^\\]*)(\\.?|$)", rewrite, flags=re.DOTALL):
        parts.append(text)
        if escape == "\\\\":
            parts.append("\\")
        elif escape[1:].isdigit():
            parts.append(int(escape[1:]))
        elif escape:
            return parts, False
    return parts, True


def replaced(value: bytes, pattern: re.Pattern[str], rewrite: Sequence[str | int], everywhere: bool) -> bytes:
    """`value` with matches rewritten; an empty match right after the previous match is skipped, as in RE2."""
    text = decoded(value)
    pieces: list[str] = []
    done, last_end = 0, -1
    for match in pattern.finditer(text):
        if match.end() == match.start() == last_end:
            continue
        pieces += (text[done : match.start()], _rewritten(match, rewrite))
        done = last_end = match.end()
        if not everywhere:
            break
    return encoded("".join(pieces) + text[done:])


def _replacer(pattern: bytes, rewrite: bytes, everywhere: bool) -> Kernel:
    regex = compiled(pattern)
    parts, sound = _parts(decoded(rewrite))
    groups = max((part for part in parts if isinstance(part, int)), default=0)
    if groups > regex.groups or not (sound or everywhere):
        return lambda x: x  # RE2 leaves the strings alone
    return lambda x: each(lambda value: replaced(value, regex, parts, everywhere), x)


def _scalar(x: Array, name: str) -> bytes:
    if x.ndim:
        raise InvalidArgumentError(f"{name} must be scalar, but received {shape_text(x.shape)}")
    value: bytes = x.item()
    return value


@kernel("RegexReplace")
def regex_replace(node: Construction) -> Kernel:
    r"""The strings with matches of the pattern rewritten; \0 to \9 stand for the match and its groups."""
    everywhere = node.attrs["replace_global"]

    def run(x: Array, pattern: Array, rewrite: Array) -> Array:
        change = _replacer(_scalar(pattern, "Pattern"), _scalar(rewrite, "Rewrite"), everywhere)
        result: Array = change(x)
        return result

    return run


@kernel("StaticRegexReplace")
def static_regex_replace(node: Construction) -> Kernel:
    """As RegexReplace, with pattern and rewrite as attrs."""
    return _replacer(node.attrs["pattern"], node.attrs["rewrite"], node.attrs["replace_global"])


def _full_match(x: Array, pattern: re.Pattern[str]) -> Array:
    return measured(lambda value: pattern.fullmatch(decoded(value)) is not None, x, _BOOL)


@kernel("RegexFullMatch")
def regex_full_match(node: Construction) -> Kernel:
    """Whether the pattern matches the whole of each string."""
    return lambda x, pattern: _full_match(x, compiled(_scalar(pattern, "Pattern")))


@kernel("StaticRegexFullMatch")
def static_regex_full_match(node: Construction) -> Kernel:
    """As RegexFullMatch, with the pattern as an attr."""
    pattern = compiled(node.attrs["pattern"])
    return lambda x: _full_match(x, pattern)
