"""What the links of a cluster carried in a step.

two transfers of 1000 bytes over one link of 1 byte/ns, the second 500 ns after the first

links                            (Link("/device:CPU:0", "network", ...),)
loads("/device:CPU:0 -> ...")    [(0, 2000, 1e9)]
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property

from ..topology import Link

LinkLoad = tuple[int, int, float]
"""from ns, to ns, bytes/s"""


class LinkUse:
    """The loads of links, found out when asked for."""

    def __init__(
        self,
        candidates: Callable[[], Iterable[Link]] = tuple,
        loads: Callable[[str], list[LinkLoad]] = lambda name: [],
        like: Callable[[str], str] = lambda name: name,
    ) -> None:
        """`candidates` are links that may have carried something; `loads` tells what a link carried, by its name.

        `like` gives the name of a link that carried the same: where devices stand for others, that of theirs.
        """
        self._candidates = candidates
        self._find_loads = loads
        self._like = like
        self._known: dict[str, list[LinkLoad]] = {}

    def loads(self, name: str) -> list[LinkLoad]:
        """(from ns, to ns, bytes/s) of a link, in order, without the times in which it carried nothing."""
        return list(self._loads(name))

    def _loads(self, name: str) -> list[LinkLoad]:
        like = self._like(name)
        if like not in self._known:
            self._known[like] = self._find_loads(like)
        return self._known[like]

    @cached_property
    def links(self) -> tuple[Link, ...]:
        """The links that carried something, in order of first use, those of one instant by name."""
        used = [(loads[0][0], link.name, link) for link in self._candidates() if (loads := self._loads(link.name))]
        return tuple(link for _, _, link in sorted(used, key=lambda row: row[:2]))
