"""Flows that do the same on links that carry the same: classes by colour refinement.

Many flows begin together, as every rank does what the others do. Two flows are in one class if they cross links of the
same classes in the same order, and two links if they are equal and the same number of flows of each class crosses each
of them. All flows of a class then have one max-min fair rate at all times, whatever classes are under way:

    flows   a: p -> r    b: q -> r    c: s -> t        links p, q, r, s, t, all of one rate
    start   {a b c}                                    {p q r s t}
    then                                               {p q s}  {r: two flows end here}  {t}
    then    {a b}  {c}                                 {p q}  {r}  {s}  {t}              stable

So one flow of a class stands for all, if as many are counted on a link of each class as cross one (r: two). A class of
links is told from others by 64 bits that are mixed of what crosses it; that the classes are right is checked exactly.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ....errors import InternalError
from ....graph.arrays import Numbers

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...topology import Link, Route

_Colours = NDArray[np.uint64]


class FlowClasses(NamedTuple):
    """`of_flow` by flow and `of_link` by link, numbers of classes; `links` are those that flows cross.

    `counts` maps (class of flows, class of links) to the flows of that class on each link of that one.
    """

    of_flow: Numbers
    of_link: Numbers
    links: Sequence[Link]
    number_of: dict[int, int]
    """by identity of a link its number"""
    counts: dict[tuple[int, int], int]


def flow_classes(routes: Sequence[Route], families: Sequence[int], likeness: Callable[[Link], Hashable]) -> FlowClasses:
    """The classes of flows over routes; flows of different families do not begin together, and are never in one class.

    Links are equal if their `likeness` is.
    """
    number_of: dict[int, int] = {}
    links: list[Link] = []
    crossed, lengths = list[int](), list[int]()
    for route in routes:
        lengths.append(len(route.links))
        for link in route.links:
            number = number_of.setdefault(id(link), len(links))
            if number == len(links):
                links.append(link)
            crossed.append(number)
    kinds: dict[Hashable, int] = {}
    start = np.array([kinds.setdefault(likeness(link), len(kinds)) for link in links], np.int64)
    flow = np.repeat(np.arange(len(routes)), lengths)
    hops = _Hops(flow, np.array(crossed, np.int64), np.arange(len(flow)) - _starts(lengths)[flow])
    numbered: dict[int, int] = {}
    dense = np.array([numbered.setdefault(family, len(numbered)) for family in families], np.int64)
    of_flow, of_link = _refined(hops, dense, start)
    return FlowClasses(of_flow, of_link, links, number_of, _counts(hops, of_flow, of_link))


class _Hops(NamedTuple):
    """By hop the flow, the link, and its place on the route of the flow."""

    flow: Numbers
    link: Numbers
    place: Numbers


def _starts(lengths: Sequence[int]) -> Numbers:
    return np.cumsum([0, *lengths])[:-1] if lengths else np.zeros(0, np.int64)


def _refined(hops: _Hops, flow: Numbers, link: Numbers) -> tuple[Numbers, Numbers]:
    """Splits classes of flows and links, numbered from 0 on, until they tell nothing more of each other."""
    count = -1
    place = hops.place.astype(np.uint64)
    while count != (count := _number(flow) + _number(link)):
        seen = _mixed(_mixed(flow.astype(np.uint64)[hops.flow]) + place)
        link = _split(link, hops.link, seen)
        seen = _mixed(_mixed(link.astype(np.uint64)[hops.link]) + place)
        flow = _split(flow, hops.flow, seen)
    return flow, link


def _number(classes: Numbers) -> int:
    return int(classes.max(initial=-1)) + 1


def _split(classes: Numbers, owner: Numbers, seen: _Colours) -> Numbers:
    """The classes split by the sum of what each of their members has seen."""
    sums = np.zeros(len(classes), np.uint64)
    np.add.at(sums, owner, seen)
    mixed = _mixed(sums + _mixed(classes.astype(np.uint64)))
    return np.unique(mixed, return_inverse=True)[1].reshape(-1).astype(np.int64)


def _mixed(values: _Colours) -> _Colours:
    """Bits well mixed, the finaliser of SplitMix64 (Steele, Lea and Flood 2014)."""
    z = values + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def _counts(hops: _Hops, of_flow: Numbers, of_link: Numbers) -> dict[tuple[int, int], int]:
    """By class of flows and of links how many of these flows cross each of these links."""
    flows, sizes = _number(of_flow), np.bincount(of_link, minlength=_number(of_link))
    pair = hops.link * flows + of_flow[hops.flow]
    once = np.unique(pair * len(of_flow) + hops.flow)  # a link twice counts once
    pairs, number = np.unique(once // max(len(of_flow), 1), return_counts=True)
    link, kind = np.divmod(pairs, max(flows, 1))
    classes, which, links = np.unique(of_link[link] * flows + kind, return_inverse=True, return_counts=True)
    most, least = np.zeros(len(classes), np.int64), np.full(len(classes), 1 << 62)
    np.maximum.at(most, which, number)
    np.minimum.at(least, which, number)
    if (most != least).any() or (links != sizes[classes // max(flows, 1)]).any():
        raise InternalError("two classes of flows or links have one colour; report the cluster and the mesh")
    return {
        (int(key) % flows, int(key) // flows): count for key, count in zip(classes.tolist(), most.tolist(), strict=True)
    }
