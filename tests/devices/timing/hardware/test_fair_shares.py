"""Groups of flows, and few in none, give to the nanosecond and the unit of rate what a search over all flows gives."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple, Protocol

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from simpy import Environment, Event, Timeout

from partita.devices.profiles import Profiles, RandomWindows, Window
from partita.devices.timing.hardware import fair_shares, few_paths
from partita.devices.timing.hardware.fair_rates import Search
from partita.devices.timing.hardware.flow_groups import FlowGroup
from partita.devices.timing.hardware.network import Listener, Network
from partita.devices.timing.hardware.ports import ActiveLink
from partita.devices.timing.hardware.profile import Profile
from partita.devices.topology import Link, Route

from .flow_by_flow import FlowByFlow

MOST_TOLD = 2_000  # starts and ends
RATES = [[10**9], [10**9, 2 * 10**9], [3 * 10**9 + 1, 7 * 10**8, 10**10], [3, 7]]
SIZES: list[st.SearchStrategy[int]] = [st.just(1000), st.sampled_from([0, 1, 500, 1000]), st.integers(0, 10**5)]
_ONE_PATCH = [HealthCheck.function_scoped_fixture]  # the same for all draws
TIMES: list[st.SearchStrategy[int]] = [st.just(0), st.sampled_from([0, 100, 500]), st.integers(0, 5000)]


class Shares(Protocol):
    """What both networks can do."""

    bottlenecks: dict[int, Link]

    def request(self, transfer: int, route: Route, size_bytes: int) -> None:
        """Asks for a transfer."""

    @property
    def is_idle(self) -> bool:
        """Whether no transfer is under way."""

    def loads(self, link: str) -> list[tuple[int, int, float]]:
        """(from, to, bytes/s)."""


class Request(NamedTuple):
    """A transfer over a route, asked for at an instant or, if `after` says one, when that transfer arrives."""

    route: Route
    size_bytes: int
    at: int
    after: int | None


class Traffic(NamedTuple):
    """Links, what is asked of them, and when they carry less."""

    links: list[Link]
    requests: list[Request]
    windows: list[Window | RandomWindows]


@st.composite
def traffic(draw: st.DrawFn, most: int = 30) -> Traffic:
    """Networks in which much collides: equal rates, few routes, a port that all share, equal sizes and instants."""
    rates, latencies = draw(st.sampled_from(RATES)), draw(st.sampled_from([[0], [0, 10]]))
    engines = draw(st.sampled_from([[0], [0, 1, 2]]))
    links = [
        Link(f"l{k}", "there", "wire", *(draw(st.sampled_from(numbers)) for numbers in (rates, latencies, engines)))
        for k in range(draw(st.integers(1, 8)))
    ]
    some = st.lists(st.sampled_from(links), min_size=1, max_size=4, unique=True)
    shared = draw(st.sampled_from([[], links[:1]]))
    routes = [Route(tuple(dict.fromkeys([*draw(some), *shared]))) for _ in range(draw(st.sampled_from([1, 2, 5, 12])))]
    size, at = draw(st.sampled_from(SIZES)), draw(st.sampled_from(TIMES))
    requests = [
        Request(
            draw(st.sampled_from(routes)),
            draw(size),
            draw(at),
            draw(st.none() | st.integers(0, number - 1)) if number else None,
        )
        for number in range(draw(st.integers(1, most)))
    ]
    windows = st.builds(
        lambda tenths, start, length: Window(Fraction(tenths, 10), start, start + length),
        st.integers(10, 40),
        st.integers(0, 3000),
        st.integers(1, 2000),
    )
    drawn = st.lists(windows, max_size=2) if min(rates) > 10 else st.just([])
    return Traffic(links, requests, list(draw(drawn)))


class Played:
    """What a network says of some traffic: starts, ends in their order, bottlenecks, loads, and when it was idle."""

    def __init__(self, network: Callable[[Environment, Listener, Profile], Shares], traffic: Traffic) -> None:
        env = Environment()
        profile = Profile(Profiles(degrade=tuple(("wire", window) for window in traffic.windows)))
        self.network = network(env, self, profile)
        self._env, self._requests = env, traffic.requests
        self.told: list[tuple[str, int, int, int]] = []
        idle: dict[int, bool] = {}  # by instant
        for number, request in enumerate(self._requests):
            if request.after is None:
                self._at(request.at, number)
        while env.peek() < float("inf") and len(self.told) < MOST_TOLD:
            env.step()
            idle[int(env.now)] = self.network.is_idle
        self.idle = [(at, now) for (_, before), (at, now) in pairwise([(0, True), *idle.items()]) if now != before]
        self.bottlenecks = self.network.bottlenecks
        self.loads = {link.name: self.network.loads(link.name) for link in traffic.links}

    def started(self, transfer: int, start_ns: int, cause_transfer: int) -> None:
        """Part of `Listener`."""
        self.told.append(("starts", transfer, start_ns, cause_transfer))

    def arrived(self, transfer: int) -> None:
        """Part of `Listener`."""
        self.told.append(("arrives", transfer, int(self._env.now), -1))
        for number, request in enumerate(self._requests):
            if request.after == transfer:
                self._ask(number)

    def _at(self, at: int, number: int) -> None:
        def ask(_: Event) -> None:
            self._ask(number)

        event = Timeout(self._env, at)
        assert event.callbacks is not None
        event.callbacks.append(ask)

    def _ask(self, number: int) -> None:
        self.network.request(number, self._requests[number].route, self._requests[number].size_bytes)


def check(traffic: Traffic) -> None:
    """Both networks say the same."""
    ours, plain = Played(Network, traffic), Played(FlowByFlow, traffic)
    assert ours.told == plain.told
    assert ours.idle == plain.idle
    assert ours.bottlenecks == plain.bottlenecks
    assert ours.loads == plain.loads


@st.composite
def between_hosts(draw: st.DrawFn) -> Traffic:
    """Transfers out of one port and into another, of few hosts or many, over some of their pairs or all of them."""
    rates, latency = draw(st.sampled_from(RATES)), draw(st.sampled_from([0, 10]))
    hosts = draw(st.integers(2, 10))
    links = [
        Link(f"{side}{host}", "there", "wire", draw(st.sampled_from(rates)), latency)
        for side in ("out", "in")
        for host in range(hosts)
    ]
    pairs = [(a, b) for a in range(hosts) for b in range(hosts) if a != b]
    if draw(st.booleans()):
        pairs = draw(st.lists(st.sampled_from(pairs), min_size=1, max_size=6, unique=True))
    routes = [Route((links[a], links[hosts + b])) for a, b in pairs]
    size, at = draw(st.sampled_from(SIZES)), draw(st.sampled_from(TIMES))
    first = [Request(route, draw(size), draw(at), None) for route in routes]
    more = [
        Request(draw(st.sampled_from(routes)), draw(size), draw(at), draw(st.none() | st.integers(0, len(first) - 1)))
        for _ in range(draw(st.integers(0, 40)))
    ]
    return Traffic(links, first + more, [])


@pytest.fixture(params=[0, 2, few_paths.MOST_PATHS], ids="{} few paths".format)
def most_few(request: pytest.FixtureRequest) -> Iterator[int]:
    """So many paths of a component get their rates one by one; others are in groups."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(few_paths, "MOST_PATHS", request.param)
        patch.setattr(few_paths, "MOST_A_PORT", min(request.param, few_paths.MOST_A_PORT))
        yield request.param


@pytest.mark.usefixtures("most_few")
class TestDrawnNetworks:
    """Whatever paths are few, ends, order, bottlenecks and loads are those of a search over all flows."""

    @given(traffic())
    @settings(max_examples=60, suppress_health_check=_ONE_PATCH)
    def test_groups_are_flow_by_flow(self, traffic: Traffic) -> None:
        """Starts, ends, order, bottlenecks, loads."""
        check(traffic)

    @settings(max_examples=20, suppress_health_check=_ONE_PATCH)
    @given(traffic(most=150))
    def test_many_flows_too(self, traffic: Traffic) -> None:
        """Enough of them that heaps and the calendar drop what is stale."""
        check(traffic)

    @settings(max_examples=60, suppress_health_check=_ONE_PATCH)
    @given(between_hosts())
    def test_pairs_of_hosts(self, traffic: Traffic) -> None:
        """Few flows over few ports, and as many groups as there are pairs."""
        check(traffic)

    @settings(max_examples=60, suppress_health_check=_ONE_PATCH)
    @given(traffic(most=4))
    def test_very_few_flows(self, traffic: Traffic) -> None:
        """Begins and ends in one instant, ends at once, lone flows that get company."""
        check(traffic)


def star(rates: Sequence[int], flows: int) -> Traffic:
    """Flows of different sizes from links of some rates into one of 1 byte/ns, each asked for when another arrives."""
    port = Link("port", "there", "wire", 10**9, 0)
    routes = [Route((Link(f"source{k}", "there", "wire", rate, 0), port)) for k, rate in enumerate(rates)]
    requests = [
        Request(routes[k % len(routes)], 1000 + 7919 * k % 1000, 10 * k, None if k < len(routes) else k - len(routes))
        for k in range(flows)
    ]
    return Traffic([port, *(route.links[0] for route in routes)], requests, [])


def test_a_port_that_many_share() -> None:
    """Sources that are never full, some that always are, and some that become full as the others end."""
    check(star([10**9] * 40, 200))
    check(star([10**9] * 5 + [10**7] * 5, 60))
    check(star([2 * 10**8] * 8, 60))


def test_a_lone_flow_gets_company() -> None:
    """In the middle of its way, in the instant of its end, on its own path, on a port that is full or not."""
    a, b, c = (Link(name, "there", "wire", rate, 0) for name, rate in (("a", 10**9), ("b", 10**9), ("c", 4 * 10**9)))
    alone = Route((c, a, b))
    for at in (0, 400, 1000):
        for other in (alone, Route((a,)), Route((b, c)), Route((c,))):
            check(Traffic([a, b, c], [Request(alone, 1000, 0, None), Request(other, 700, at, None)], []))
            check(Traffic([a, b, c], [Request(other, 700, at, None), Request(alone, 1000, 0, None)], []))


def test_components_stay_apart_and_go_into_groups() -> None:
    """Sixty pairs that begin at once, of which some share ports; then so many that all are joined."""
    links = [Link(f"l{k}", "there", "wire", 10**9 + k % 3, 0) for k in range(60)]
    apart = [Request(Route((links[k], links[k ^ 1])), 1000 + k, 0, None) for k in range(60)]
    joined = [Request(Route((links[k], links[(k + 2) % 60])), 500 + k, 700 + k % 2, None) for k in range(60)]
    check(Traffic(links, apart, []))
    check(Traffic(links, apart + joined, []))


def test_the_clock_stops_once_for_each_instant() -> None:
    """Ends that come earlier than those before them do not leave stops behind that beget others."""
    stops: list[int] = []

    class Counted(Network):
        def _wake(self, event: Event) -> None:
            stops.append(int(event.env.now))
            super()._wake(event)

    links = [Link(f"l{k}", "there", "wire", 10**9, 0) for k in range(40)]
    Played(
        Counted,
        Traffic(links, [Request(Route((link,)), 10**5 - 1000 * k, k, None) for k, link in enumerate(links)], []),
    )
    assert len(stops) == len(set(stops)) == 40


def test_what_is_stale_is_dropped() -> None:
    """However often rates have changed, the calendar and the heaps of groups hold a few entries a flow at most."""
    alive, flows = 50, 1500
    played = Played(Network, star([10**9] * alive, flows))
    network = played.network
    assert isinstance(network, Network)
    groups = network._shares._grouping._groups.values()
    assert MOST_TOLD <= len(played.told) < 2 * flows  # so that it has not come to its end
    assert len(network._calendar) < 4 * alive + 64
    assert all(len(group.ends) + len(group.bounds) < 8 * alive + 64 for group in groups)


def test_a_search_leaves_out_what_is_slower(monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight flows that share a slow port are not looked at when one comes or goes that has the rest of another port."""
    looked_at: list[int] = []

    class Watched(Search):
        def __init__(self, wide: Iterable[ActiveLink], changed: Iterable[FlowGroup], mark: int, level: int) -> None:
            super().__init__(wide, changed, mark, level)
            looked_at.append(len(self.groups))

    monkeypatch.setattr(few_paths, "MOST_PATHS", 0)
    monkeypatch.setattr(few_paths, "MOST_A_PORT", 0)
    monkeypatch.setattr(fair_shares, "Search", Watched)
    slow, wide, out = (Link(name, "there", "wire", rate, 0) for name, rate in (("s", 80), ("w", 1000), ("o", 2000)))
    crowd = [Link(f"c{k}", "there", "wire", 10**9, 0) for k in range(8)]
    below = [Request(Route((slow, wide, other)), 10**6, 0, None) for other in crowd]
    above = [
        Request(Route((out, wide)), 500, 1, None),
        *(Request(Route((out, wide)), 500, 0, 8 + k) for k in range(20)),
    ]
    Played(Network, Traffic([slow, wide, out, *crowd], below + above, []))
    assert looked_at[0] == 8
    assert looked_at[1:21] == [1] * 20
