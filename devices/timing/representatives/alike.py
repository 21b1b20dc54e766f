"""Are the ranks of a stage alike? What is compared of devices and of the groups of an axis, and how it is refused.

    8 ranks on one host, one of them slower from 1 ms on     refused: the windows of that device are named
    tp 4 on hosts of 6 GPUs                                  refused: ranks 0 to 3 are on one host, ranks 4 to 7 on two
    dp 2, a slow network port for half of the GPUs           refused: the ways of two groups have other rates

What a representative plays would be wrong for some of the ranks then; the graph of all ranks is played right.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from ....errors import UnimplementedError
from ...profiles import RandomWindows

if TYPE_CHECKING:
    from ...topology import Link
    from ..collectives.group import RankGroup
    from ..collectives.plan import CollectivePlan
    from .ranks import Ranks

_LISTED = 3


def refuse(why: str) -> NoReturn:
    """Raises UnimplementedError: ranks are not alike, and why."""
    raise UnimplementedError(
        f"representatives cannot stand for the ranks of this cluster: {why}; simulate the graph of all ranks "
        "(write_out, or representatives=False)"
    )


def check_devices(ranks: Ranks) -> None:
    """UnimplementedError if the ranks of a stage have other models, hosts of other models, or slow times."""
    devices, per_stage, slow = ranks.cluster.devices, ranks.mesh.per_stage, dict[str, list[Hashable]]()
    for name, windows in ranks.cluster.profiles.slow:
        # What is drawn for a device is drawn for no other.
        slow.setdefault(name, []).append((name, windows) if isinstance(windows, RandomWindows) else windows)
    for stage in range(ranks.mesh.pp):
        first, *others = ranks.devices[stage * per_stage : (stage + 1) * per_stage]
        model, host = devices[first].spec, devices[ranks.host(first)].spec
        windows = slow.get(devices[first].name)
        for other in others:
            names = f"{devices[first].name!r} and {devices[other].name!r}, ranks of stage {stage},"
            spec = devices[other].spec
            if spec is not model and spec != model:
                refuse(f"{names} differ: the first is a {model.name}, the second a {spec.name}{_same(model, spec)}")
            spec = devices[ranks.host(other)].spec
            if spec is not host and spec != host:
                refuse(f"{names} have different hosts: {host.name} and {spec.name}{_same(host, spec)}")
            if slow and slow.get(devices[other].name) != windows:
                refuse(f"{names} differ: one of them is slower at times, the other not in the same way")


def _same(one: object, other: object) -> str:
    name = getattr(one, "name", None)
    return " of other numbers" if name == getattr(other, "name", None) else ""


class LinkLikeness:
    """What two links must have in common to be alike."""

    def __init__(self, ranks: Ranks) -> None:
        self._profiles = ranks.cluster.profiles

    def __call__(self, link: Link) -> Hashable:
        """Model, rate, latency, engines and paces; one that is drawn for a link is that of no other."""
        own: list[Hashable] = []
        if self._profiles.degrade:
            for windows in self._profiles.of_link(link):
                own.append((link.name, windows) if isinstance(windows, RandomWindows) else windows)
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
        (plan.name, plan.cost, plan.latency_ns, tuple((p.alone_ns, p.moved_bytes, len(p.routes)) for p in plan.phases))
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
