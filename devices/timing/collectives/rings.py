"""Rings among ranks that links join in pairs: the largest set of one-way rings that share no link.

Links are counted by ordered pairs, each NVLink being one in either direction. A ring visits every rank once and uses
one link of each pair that it passes. The first GPUs of a DGX-1 with V100, whose links form a cube mesh:

    rings_of(2, links)    [(0, 1)]                                              one link joins the two
    rings_of(4, links)    [(0, 1, 2, 3), (0, 3, 2, 1), (0, 2, 1, 3), (0, 3, 1, 2)]
    rings_of(5, links)    []                                                    GPU 4 has links to one of the others

The search takes rings greedily, along the pairs with most links left, each with its reverse. Where that is fewer than
any bound allows, and all rings can be listed, sets of them are tried, the best one being kept. Beyond `_MOST_RINGS`
rings or `_MOST_STEPS` steps the answer is the best set that was seen: it holds, and may not be the largest.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

LinkCounts = Mapping[tuple[int, int], int]
"""by (from, to) the number of links; pairs without any are absent"""
Ring = tuple[int, ...]
_MOST_RINGS = 2_000
_MOST_STEPS = 50_000


def rings_of(ranks: int, links: LinkCounts) -> list[Ring]:
    """The rings of ranks 0 to `ranks` - 1, each from rank 0 on; none where no ring visits all of them."""
    if ranks < 2:
        return []
    left = {pair: count for pair, count in links.items() if count > 0}
    bound = _bound(ranks, left)
    if not bound:
        return []
    greedy = _greedy(ranks, dict(left))
    if len(greedy) == bound:
        return greedy
    known = list(islice(_all_rings(ranks, left), _MOST_RINGS + 1))
    return _largest(known[:_MOST_RINGS], left, greedy, bound)


def hops_of(ring: Sequence[int]) -> Iterator[tuple[int, int]]:
    """The pairs that a ring passes, the last one back to its first rank."""
    for i, rank in enumerate(ring):
        yield rank, ring[(i + 1) % len(ring)]


def _bound(ranks: int, left: LinkCounts) -> int:
    """No more rings than the links that leave any rank, or that come to it."""
    out, into = [0] * ranks, [0] * ranks
    for (a, b), count in left.items():
        out[a] += count
        into[b] += count
    return min(*out, *into)


def _greedy(ranks: int, left: dict[tuple[int, int], int]) -> list[Ring]:
    rings: list[Ring] = []
    while (ring := next(_all_rings(ranks, left), None)) is not None:
        rings += _taken(ring, left)
    return rings


def _taken(ring: Ring, left: dict[tuple[int, int], int]) -> list[Ring]:
    """The ring, and its reverse if there are links for it; their links are no longer left."""
    taken = [ring]
    _use(ring, left, -1)
    back = (ring[0], *ring[:0:-1])
    if all(left.get(hop, 0) > 0 for hop in hops_of(back)):
        _use(back, left, -1)
        taken.append(back)
    return taken


def _use(ring: Ring, left: dict[tuple[int, int], int], change: int) -> None:
    for hop in hops_of(ring):
        left[hop] += change


def _all_rings(ranks: int, left: LinkCounts) -> Iterator[Ring]:
    """Every ring over links that are left, in depth-first order, along pairs with most links first."""
    ways = [
        sorted((b for b in range(1, ranks) if left.get((a, b), 0) > 0), key=lambda b: (-left[a, b], b))
        for a in range(ranks)
    ]
    path, steps = [0], 0
    rests = [iter(ways[0])]
    while rests and steps < _MOST_STEPS:
        steps += 1
        following = next(rests[-1], None)
        if following is None:
            rests.pop()
            path.pop()
        elif following not in path:
            if len(path) + 1 < ranks:
                path.append(following)
                rests.append(iter(ways[following]))
            elif left.get((following, 0), 0) > 0:
                yield (*path, following)


def _largest(known: Sequence[Ring], links: LinkCounts, best: list[Ring], bound: int) -> list[Ring]:
    """The largest set among known rings, some of which may stand in it several times, if `best` is not larger."""
    left, chosen, steps = dict(links), list[int](), 0
    ranks = len(known[0]) if known else 0
    following = 0
    while len(best) < bound and steps < _MOST_STEPS:
        steps += 1
        if following < len(known) and len(chosen) + _bound(ranks, left) > len(best):
            if all(left[hop] > 0 for hop in hops_of(known[following])):
                chosen.append(following)
                _use(known[following], left, -1)
                if len(chosen) > len(best):
                    best = [known[i] for i in chosen]
            else:
                following += 1
            continue
        if not chosen:
            break
        following = chosen.pop()
        _use(known[following], left, 1)
        following += 1
    return best
