"""Units: groups of parameters that are gathered together, by name scopes, and buckets of tensors by size.

    model/embed/table   model/block_0/w   model/block_0/b   model/block_1/w   head/w

Without a choice the units are the scopes of the first level on which the names differ: here "model" and "head". With
units=["model/block_0", "model/block_1"] the two blocks are units, and all other parameters make one more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches
from typing import TypeVar

from ....errors import InvalidArgumentError

_T = TypeVar("_T")


def unit_names(names: Sequence[str], units: Sequence[str] | None) -> list[str]:
    """The unit of each parameter; InvalidArgumentError for a scope without any, or named twice."""
    if units is None:
        return _default(names)
    scopes = [unit.rstrip("/") for unit in units]
    for scope in scopes:
        if scopes.count(scope) > 1:
            raise InvalidArgumentError(f"units: scope {scope!r} is named twice; name each scope once")
    found = [max((s for s in scopes if _is_within(name, s)), key=len, default="") for name in names]
    for scope in scopes:
        if scope not in found:
            raise InvalidArgumentError(f"units: scope {scope!r} has no parameter that is updated; {_advice(scope, names)}")
    return found


def _default(names: Sequence[str]) -> list[str]:
    """The first level of scopes on which the names differ; parameters without a scope there are units of their own."""
    parts = [name.split("/") for name in names]
    level = 0
    while all(len(p) > level + 1 for p in parts) and len({p[level] for p in parts}) == 1:
        level += 1
    return ["/".join(p[: level + 1]) for p in parts]


def _is_within(name: str, scope: str) -> bool:
    return name == scope or name.startswith(f"{scope}/")


def _advice(scope: str, names: Iterable[str]) -> str:
    scopes = sorted({"/".join(n.split("/")[:k]) for n in names for k in range(1, n.count("/") + 1)} or set(names))
    near = get_close_matches(scope, scopes, 3, 0.0)
    return f"there are {', '.join(map(repr, near))}" if near else "no parameter is sharded"


def buckets(items: Iterable[_T], kind: Callable[[_T], object], size: Callable[[_T], int], most: int) -> list[list[_T]]:
    """Neighbours of one kind, as many as have `most` bytes together; one that is larger has a bucket of its own."""
    found: list[list[_T]] = []
    filled, last = 0, object()
    for item in items:
        if not found or kind(item) != last or filled + size(item) > most:
            found.append([])
            filled, last = 0, kind(item)
        found[-1].append(item)
        filled += size(item)
    return found
