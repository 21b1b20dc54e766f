r"""Patterns of file names, as MatchingFiles has them: each matches within one folder.

    *        any characters, a dot in front and none included        [a-z]   one of these
    ?        one character                                            [!a-z]  one of all others; ^ means the same
    \x       the character x itself

Names come out as the pattern begins: runs/* finds runs/1, a pattern without a folder finds ./x.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

_MAGIC = re.compile(r"[*?\[\\]")
_TOKEN = re.compile(
    r"(?P<any>\*) | (?P<one>\?) | \\(?P<plain>.) | \[(?P<no>[!^]?)(?P<set>\]?(?:\\.|[^]\\])*)\] | (?P<char>[^\\[])",
    re.DOTALL | re.VERBOSE,
)

_MEMBER = re.compile(r"(\\.|.)(?:-(\\.|.))?", re.DOTALL)  # one character, or the ends of a range


def matching_files(pattern: str) -> list[str]:
    """The existing files and folders that a pattern matches, in any order; of a name without wildcards, the name."""
    magic = _MAGIC.search(pattern)
    if magic is None:
        return [pattern] if pattern and _real(pattern).exists() else []
    start = pattern.rfind("/", 0, magic.start())
    folder = pattern[:start] if start > 0 else "/" if start == 0 else "."
    if start > 0 and folder.endswith("/"):
        return []  # as in TensorFlow, which compares whole paths
    names = [folder]
    *folders, last = pattern[start + 1 :].rstrip("/").split("/")
    for part in folders:
        names = [name for name in _children(names, part) if _real(name).is_dir()]
    return list(_children(names, last))


def _real(name: str) -> Path:
    """The file of a name, whose ".." takes back the part before it even if that does not exist, as in TensorFlow."""
    return Path(os.path.normpath(name))


def _children(folders: list[str], part: str) -> Iterator[str]:
    """What one part of a pattern matches in some folders; nothing in a folder that cannot be read."""
    pattern = _expression(part)
    for folder in folders:
        try:
            names = [path.name for path in _real(folder).iterdir()]
        except OSError:
            continue
        yield from (f"{folder.rstrip('/')}/{name}" for name in names if pattern and pattern.fullmatch(name))


def _expression(part: str) -> re.Pattern[str] | None:
    """The regular expression of one part of a pattern; None for an open bracket or a lone backslash."""
    pieces, place = [], 0
    while place < len(part):
        token = _TOKEN.match(part, place)
        if token is None:
            return None
        pieces.append(_piece(token))
        place = token.end()
    try:
        return re.compile("".join(pieces), re.DOTALL)
    except re.error:  # an empty range, such as [z-a]
        return None


def _piece(token: re.Match[str]) -> str:
    if token["any"] or token["one"]:
        return ".*" if token["any"] else "."
    if token["set"] is None:
        return re.escape(token["plain"] or token["char"])
    members = "".join(
        "-".join(_plain(end) for end in match.groups() if end) for match in _MEMBER.finditer(token["set"])
    )
    return f"[{'^' if token['no'] else ''}{members}]"


def _plain(member: str) -> str:
    return re.escape(member[-1])
