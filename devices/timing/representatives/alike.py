"""Are the ranks of a stage alike? What is compared of devices and of the groups of an axis, and how it is refused.

    8 ranks on one host, one of them slower from 1 ms on     refused: the windows of that device are named
    tp 4 on hosts of 6 GPUs                                  refused: ranks 0 to 3 are on one host, ranks 4 to 7 on two
    dp 2, a slow network port for half of the GPUs           refused: the ways of two groups have other rates

What a representative plays would be wrong for some of the ranks then; the graph of all ranks is played right.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from ....errors import UnimplementedError
from ...profiles import RandomWindows
from ..hardware.profile import Pace

if TYPE_CHECKING:
    from ...topology import Link
    from ..collectives.group import RankGroup
    from ..collectives.plan import CollectivePlan
    from ..events import Events
    from .ranks import Ranks

_LISTED = 3


def refuse(why: str) -> NoReturn:
    """Raises UnimplementedError: ranks are not alike, and why."""
    raise UnimplementedError(
        f"representatives cannot stand for the ranks of this cluster: {why}; simulate the graph of all ranks "
        "(write_out, or representatives=False)"
    )


def check_devices(ranks: Ranks) -> None:
    """UnimplementedError if the ranks of a stage have other models, or hosts of other models."""
    devices = ranks.cluster.devices
    for stage, first, other in _pairs(ranks):
        names = f"{devices[first].name!r} and {devices[other].name!r}, ranks of stage {stage},"
        spec, own = devices[other].spec, devices[first].spec
        if spec is not own and spec != own:
            refuse(f"{names} differ: the first is a {own.name}, the second a {spec.name}{_same(own, spec)}")
        spec, own = devices[ranks.host(other)].spec, devices[ranks.host(first)].spec
        if spec is not own and spec != own:
            refuse(f"{names} have different hosts: {own.name} and {spec.name}{_same(own, spec)}")


def check_paces(ranks: Ranks, events: Events) -> None:
    """UnimplementedError if a rank is slower than its representative, or faster, while that computes."""
    devices, slow = ranks.cluster.devices, ranks.cluster.profiles
    if not slow.slow:
        return
    named = {name for name, _ in slow.slow}
    end_ns = int(events.end_ns.max(initial=0))
    for stage, first, other in _pairs(ranks):
        own, its = devices[first].name, devices[other].name
        if not named & {own, its}:
            continue
        computing = events.device.is_text(own) & events.of_kind("compute") & ~events.stream.is_text("host")
        starts, ends = events.start_ns[computing], events.end_ns[computing]
        for begin, end in _odd_times(Pace(own, slow.of_device(own)), Pace(its, slow.of_device(its)), end_ns):
            if ((starts < end) & (begin < ends)).any():
                refuse(
                    f"{own!r} and {its!r}, ranks of stage {stage}, are not slow at the same times: from {begin} ns on "
                    "one of them computes more slowly than the other"
                )


def _pairs(ranks: Ranks) -> Iterator[tuple[int, int, int]]:
    """By stage the representative with every other rank, by number of the device."""
    per_stage = ranks.mesh.per_stage
    for stage in range(ranks.mesh.pp):
        first, *others = ranks.devices[stage * per_stage : (stage + 1) * per_stage]
        yield from ((stage, first, other) for other in others)


def _odd_times(one: Pace, other: Pace, end_ns: int) -> Iterator[tuple[int, int]]:
    """From when to when two paces differ before an instant."""
    at = 0
    while at < end_ns:
        changes = [change for pace in (one, other) if (change := pace.next_change(at)) is not None]
        following = min([*changes, end_ns])
        if one.factor(at) != other.factor(at):
            yield at, following
        at = following


def _same(one: object, other: object) -> str:
    name = getattr(one, "name", None)
    return " of other numbers" if name == getattr(other, "name", None) else ""


class LinkLikeness:
    """What two links must have in common to be alike."""

    def __init__(self, ranks: Ranks) -> None:
        self._profiles = ranks.cluster.profiles

    def __call__(self, link: Link) -> Hashable:
        """Model, rate, latency, engines and paces; one that is drawn for a link is that of no other."""
        windows = self._profiles.of_link(link) if self._profiles.degrade else []
        own = [(link.name, each) if isinstance(each, RandomWindows) else each for each in windows]
        return link.model, link.bandwidth_bytes_per_s, link.latency_ns, link.copy_engines, tuple(own)


class GroupFacts(NamedTuple):
    """What the time of a collective depends on, apart from who shares its links."""

    per_host: tuple[int, ...]
    ways: frozenset[Hashable]
    between: Hashable
    plans: tuple[Hashable, ...]


def facts_of(group: RankGroup, plans: Sequence[CollectivePlan]) -> GroupFacts:
    """The facts of a group and its plans of some size."""
    between = group.ports if len(group.by_host) > 1 else None
    of_plans = [
        (
            plan.cost,
            plan.latency_ns,
            tuple((p.alone_ns, p.moved_bytes, Fraction(p.rate, p.shares)) for p in plan.phases),
        )
        for plan in plans
    ]
    return GroupFacts(tuple(sorted(group.per_host)), frozenset(group.hosts), between, tuple(of_plans))


def check_groups_alike(what: str, first: tuple[list[str], GroupFacts], other: tuple[list[str], GroupFacts]) -> None:
    """UnimplementedError if two groups have other facts; each is given with the names of its devices."""
    (ranks, facts), (others, their) = first, other
    if facts == their:
        return
    if facts.per_host != their.per_host:
        why = f"the first is on {_hosts(facts)}, the second on {_hosts(their)}"
    elif facts.ways != their.ways:
        why = "the ways inside their hosts differ"
    elif facts.between != their.between:
        why = "their ways between hosts have other rates or latencies"
    else:
        why = "their collectives take other times"
    refuse(f"the groups {listed(ranks)} and {listed(others)} of {what} are not alike: {why}")


def _hosts(facts: GroupFacts) -> str:
    hosts = len(facts.per_host)
    return f"{hosts} host{'s' if hosts > 1 else ''} with {', '.join(map(str, facts.per_host[:_LISTED]))} ranks"


def listed(names: Sequence[str]) -> str:
    """Some names as text."""
    more = len(names) - _LISTED
    return "[" + ", ".join(names[:_LISTED]) + (f" and {more} more]" if more > 0 else "]")
