"""Flows that stand for several, and flows of other ranks that have to end with those of representatives."""

from __future__ import annotations

from collections import defaultdict
from functools import partial
from typing import NamedTuple

import pytest
from hypothesis import given, strategies as st
from simpy import Environment, Event, Timeout

from partita.devices.timing.hardware.equals import EqualFlows, EqualGroups, SharedRoute
from partita.devices.timing.hardware.instants import Instants
from partita.devices.timing.hardware.network import Network
from partita.devices.timing.representatives.refinement import FlowClasses, flow_classes
from partita.devices.topology import Link, Route
from partita.errors import UnimplementedError


class Begun(NamedTuple):
    """A flow that begins at an instant."""

    route: Route
    size_bytes: int
    at_ns: int


class Ends:
    """When the flows of a network arrive, by number."""

    def __init__(self, flows: dict[int, Begun]) -> None:
        self._env = Environment()
        self.network = Network(self._env, self)
        self.at_ns: dict[int, int] = {}
        for number, flow in flows.items():
            event = Timeout(self._env, flow.at_ns)
            assert event.callbacks is not None
            event.callbacks.append(partial(self._ask, number, flow))
        self._env.run()

    def _ask(self, number: int, flow: Begun, _: Event) -> None:
        self.network.request(number, flow.route, flow.size_bytes)

    def started(self, transfer: int, start_ns: int, cause_transfer: int) -> None:
        """Part of `Listener`."""

    def arrived(self, transfer: int) -> None:
        """Part of `Listener`."""
        self.at_ns[transfer] = int(self._env.now)


@st.composite
def families(draw: st.DrawFn) -> tuple[list[Route], list[int], dict[int, tuple[int, int]]]:
    """Routes, the family of each, and by family size and instant."""
    rates = draw(st.sampled_from([[10**9], [10**9, 2 * 10**9], [3 * 10**9 + 1, 7 * 10**8]]))
    links = [Link(f"l{n}", "there", "wire", draw(st.sampled_from(rates)), 0) for n in range(draw(st.integers(2, 8)))]
    ways = st.lists(st.sampled_from(links), min_size=1, max_size=3, unique=True)
    routes = [Route(tuple(way)) for way in draw(st.lists(ways, min_size=2, max_size=14))]
    of = [draw(st.integers(0, 2)) for _ in routes]
    return routes, of, {n: (draw(st.integers(1, 5000)), draw(st.sampled_from([0, 0, 300, 1000]))) for n in range(3)}


def shared(classes: FlowClasses, flow: int, route: Route) -> SharedRoute:
    """The route of a class, over the first link of each class."""
    first = {}
    for link in reversed(classes.links):
        first[int(classes.of_link[classes.number_of[id(link)]])] = link
    own = dict.fromkeys(int(classes.of_link[classes.number_of[id(link)]]) for link in route.links)
    counts = tuple(classes.counts[int(classes.of_flow[flow]), of_link] for of_link in own)
    return SharedRoute(tuple(first[of_link] for of_link in own), counts)


@given(families())
def test_a_flow_that_counts_for_its_class_ends_as_all_of_it(
    drawn: tuple[list[Route], list[int], dict[int, tuple[int, int]]],
) -> None:
    """One flow of each class, with counts on the links, or all flows: the same ends to the ns, and the same loads."""
    routes, of, begins = drawn
    classes = flow_classes(routes, of, lambda link: link.bandwidth_bytes_per_s)
    flows = {n: Begun(route, *begins[family]) for n, (route, family) in enumerate(zip(routes, of, strict=True))}
    all_ends = Ends(flows)
    firsts: dict[int, int] = {}
    for n in flows:
        firsts.setdefault(int(classes.of_flow[n]), n)
    own = Ends({n: flows[n]._replace(route=shared(classes, n, routes[n])) for n in firsts.values()})
    by_class = defaultdict(set)
    for n, at in all_ends.at_ns.items():
        by_class[int(classes.of_flow[n])].add(at)
    assert by_class == {int(classes.of_flow[n]): {at} for n, at in own.at_ns.items()}
    for link in {link for n in firsts.values() for link in shared(classes, n, routes[n]).links}:
        assert own.network.loads(link.name) == all_ends.network.loads(link.name)


def clock(*ends: tuple[int, int]) -> float:
    """A phase of one flow, with an equal one of another group, which arrive at these instants: (flow, ns).

    Returns when both had arrived, in ns.
    """
    env = Environment()
    equals = EqualFlows(Instants(env))
    (other,) = equals.phase(range(7, 8), EqualGroups((Route(),), ((1,),), (("gpu:2", "gpu:3"),)))

    def arrive(flow: int, _: Event) -> None:
        equals.arrived(other if flow else 7)

    for flow, at in ends:
        event: Event = Timeout(env, at)
        assert event.callbacks is not None
        event.callbacks.append(partial(arrive, flow))
    env.run()
    return float(env.now)


def test_equal_flows_may_end_in_any_order_of_one_instant() -> None:
    """Nothing is raised, whoever is first."""
    assert clock((0, 10), (1, 10)) == clock((1, 10), (0, 10)) == 10


@pytest.mark.parametrize(("ends", "who"), [(((0, 10), (1, 12)), "gpu:2, gpu:3"), (((1, 9), (0, 10)), "the repres")])
def test_flows_that_end_at_other_times_are_refused(ends: tuple[tuple[int, int], ...], who: str) -> None:
    """The later one is named, with both instants."""
    with pytest.raises(
        UnimplementedError, match=f"what {who}.* ends at {ends[1][1]} ns, that of others at {ends[0][1]}"
    ):
        clock(*ends)
