"""Kernels that match and rewrite strings by regular expressions of RE2's syntax, with Python's engine.

A pattern has RE2's meaning, see `re2_syntax`; single bytes (\\C) and rare scripts raise UnimplementedError.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array
from ..registry import Construction, Kernel, kernel
from .each_string import decoded, each, encoded, measured
from .re2_syntax import translated

_BOOL = np.dtype(np.bool_)


@lru_cache(maxsize=256)
def compiled(pattern: bytes) -> re.Pattern[str]:
    """The compiled pattern; InvalidArgumentError where it is malformed."""
    return re.compile(translated(decoded(pattern)), re.ASCII)


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


# A class, a character or an escape that stands for one, at least once, and no alternative: such a match is not empty.
_TAKES_CHARACTERS = re.compile(
    r"(?:\[\^?\]?+(?:\\.|[^\]\\])*\]|\\[dDsSwW]|[A-Za-z0-9 _,;:@#!%&'\"<>=~/-])(?![*?{])[^|]*", re.DOTALL
)


def _template(pattern: re.Pattern[str], parts: Sequence[str | int]) -> str | None:
    """The rewrite in the syntax of Python's `sub`; None where matches may be empty, which `sub` takes otherwise."""
    if not _TAKES_CHARACTERS.fullmatch(pattern.pattern):
        return None
    return "".join(part.replace("\\", "\\\\") if isinstance(part, str) else f"\\g<{part}>" for part in parts)


def _replacer(pattern: bytes, rewrite: bytes, everywhere: bool) -> Kernel:
    regex = compiled(pattern)
    parts, sound = _parts(decoded(rewrite))
    groups = max((part for part in parts if isinstance(part, int)), default=0)
    if groups > regex.groups or not (sound or everywhere):
        return lambda x: x  # RE2 leaves the strings alone
    template = _template(regex, parts)
    if template is None:
        return lambda x: each(lambda value: replaced(value, regex, parts, everywhere), x)
    most = 0 if everywhere else 1
    return lambda x: each(lambda value: encoded(regex.sub(template, decoded(value), most)), x)


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
