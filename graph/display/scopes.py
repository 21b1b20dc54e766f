"""Things with names like "layer1/dense/MatMul", folded by name scope, in so many bytes of HTML.

    layer1/ 3 nodes                 each scope says what is in it, and opens at a click
      dense/ 2 nodes
        MatMul: float = MatMul(x, kernel)
        BiasAdd: float = BiasAdd(MatMul, bias)
      Relu: float = Relu(dense/BiasAdd)

A scope shares its room out among the scopes in it; what has no room is counted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from ...collector import collector_paused
from .html import Html, details, element

_DEPTH = 24  # scopes in each other; names that go on keep their slashes
_ROOM = 300  # bytes for what is said of things that are left out


class Named(NamedTuple):
    """Something with a name, by its place in the caller's list."""

    parts: Sequence[str]
    place: int


def folded(
    names: Sequence[str], line: Callable[[int, str], str], total: Callable[[Sequence[int]], str], most: int
) -> Html:
    """All names in at most `most` bytes.

    `line` is told the place of a name and what of it is below its scope, `total` the places of all names of a scope.
    """
    with collector_paused():  # it would walk the parts of hundreds of thousands of names again and again
        things = [Named(name.split("/"), place) for place, name in enumerate(names)]
        return _Folder(line, total).level(things, 0, most)


class _Folder:
    """What all scopes of a drawing share."""

    def __init__(self, line: Callable[[int, str], str], total: Callable[[Sequence[int]], str]) -> None:
        self._line = line
        self._total = total

    def level(self, things: Sequence[Named], depth: int, most: int) -> Html:
        """What a scope has in it: first a line for each thing and scope, then, in the room that is left, the scopes."""
        groups = list(_groups(things, depth).values())
        heads, room = [], most - _ROOM
        for group in groups:
            label, below = _label(group, depth)
            head = self._head(group, label, below)
            room -= head.size
            if room < 0:
                break
            heads.append((group, below, head))
        parts = self._opened(heads, room)
        if len(heads) < len(groups):
            hidden = sum(map(len, groups[len(heads) :]))
            parts.append(element("div", f"... and {hidden:,} more, for which there is no room here"))
        return Html("".join(parts))

    def _head(self, group: Sequence[Named], label: str, below: int) -> Html:
        if not below:
            return element("div", self._line(group[0].place, label), style="margin-left:1em;font-family:monospace")
        return details(f"{label}/ {self._total([thing.place for thing in group])}", "")

    def _opened(self, heads: Sequence[tuple[Sequence[Named], int, Html]], room: int) -> list[Html]:
        """The lines, with what is in each scope."""
        scopes = sum(1 for _, below, _ in heads if below)
        parts = []
        for group, below, head in heads:
            if not below:
                parts.append(head)
                continue
            share = room // scopes
            scopes -= 1
            inner = self.level(group, below, share) if share > 2 * _ROOM else Html("")
            room -= inner.size
            parts.append(Html(head.removesuffix("</details>") + inner + "</details>"))
        return parts


def _groups(things: Sequence[Named], depth: int) -> dict[object, list[Named]]:
    """Things by the scope or, for one without a scope of its own, alone."""
    groups: dict[object, list[Named]] = {}
    for thing in things:
        is_alone = depth >= _DEPTH or len(thing.parts) == depth + 1
        groups.setdefault(thing.place if is_alone else thing.parts[depth], []).append(thing)
    return groups


def _label(group: Sequence[Named], depth: int) -> tuple[str, int]:
    """The name of a group below its scope, and how many parts that is from the first; 0 for a single thing.

    Scopes with nothing but one scope in them are one.
    """
    first = group[0].parts
    if len(group) == 1:
        return "/".join(first[depth:]), 0
    end = depth + 1
    while end < _DEPTH and all(len(it.parts) > end + 1 and it.parts[end] == first[end] for it in group):
        end += 1
    return "/".join(first[depth:end]), end
