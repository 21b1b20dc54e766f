"""Transfers on the simulated clock: fair shares to the nanosecond, copy engines, order, loads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise

import pytest
from hypothesis import given, strategies as st
from simpy import Environment, Event, Timeout

from partita.devices.link import transfer_ns
from partita.devices.timing import Flow, finish_times
from partita.devices.timing.hardware.network import Network
from partita.devices.topology import Link, Route


class Transfers:
    """Asks a network for transfers at given times and writes down what it is told."""

    def __init__(self) -> None:
        self.env = Environment()
        self.network = Network(self.env, self)
        self.starts: list[tuple[int, int, int]] = []  # transfer, start, cause
        self.ends: dict[int, int] = {}
        self.then: dict[int, Callable[[], None]] = {}  # what an arrival asks for

    def started(self, transfer: int, start_ns: int, cause_transfer: int) -> None:
        """Part of `Listener`."""
        self.starts.append((transfer, start_ns, cause_transfer))

    def arrived(self, transfer: int) -> None:
        """Part of `Listener`."""
        self.ends[transfer] = int(self.env.now)
        if transfer in self.then:
            self.then[transfer]()

    def ask(self, at: int, transfer: int, route: Route, size_bytes: int) -> None:
        """Requests a transfer at a time."""

        def request(_: Event) -> None:
            self.network.request(transfer, route, size_bytes)

        event = Timeout(self.env, at)
        assert event.callbacks is not None
        event.callbacks.append(request)


def link(name: str, rate: int = 10**9, latency: int = 0, engines: int = 0) -> Link:
    """A link of 1 byte/ns unless told otherwise."""
    return Link(name, "there", "wire", rate, latency, engines)


def run(*requests: tuple[int, Sequence[Link], int]) -> Transfers:
    """Transfers numbered in order, given as (request, links, bytes)."""
    transfers, routes = Transfers(), dict[tuple[Link, ...], Route]()
    for number, (at, links, size) in enumerate(requests):
        route = routes.setdefault(tuple(links), Route(tuple(links)))
        transfers.ask(at, number, route, size)
    transfers.env.run()
    return transfers


def ends(*requests: tuple[int, Sequence[Link], int]) -> list[int]:
    """Arrivals in order of number."""
    arrived = run(*requests).ends
    return [arrived[number] for number in range(len(requests))]


@given(st.integers(0, 10**12), st.integers(1, 10**12), st.integers(0, 10**6), st.integers(0, 10**9))
def test_a_transfer_alone_is_exact(size: int, rate: int, latency: int, at: int) -> None:
    """Latency, and bytes / rate with a started nanosecond counted whole."""
    assert ends((at, [link("a", rate, latency)], size)) == [at + transfer_ns(size, rate, latency)]


@given(st.integers(1, 40), st.integers(1, 10**10), st.integers(1, 10**12))
def test_equal_flows_end_when_their_bytes_have_passed(flows: int, size: int, rate: int) -> None:
    """All at once, and not a nanosecond late, however the rate divides."""
    assert ends(*[(0, [link("a", rate)], size)] * flows) == [transfer_ns(flows * size, rate)] * flows


def test_the_example_of_the_module() -> None:
    """The second flow halves the rate of the first, and has the link to itself in the end."""
    wire = [link("a", latency=10)]
    assert ends((0, wire, 1000), (500, wire, 1000)) == [1510, 2010]


def test_small_messages_do_not_wait_for_large_ones() -> None:
    """1 GB and 1 kB leave one port of 10 GB/s: the small one has half of it."""
    port = [link("nic", 10**10, 5000)]
    assert ends((0, port, 10**9), (0, port, 1000))[1] == 5000 + 200


def test_nothing_to_move_takes_the_latency() -> None:
    """0 bytes, at any load, and they need no copy engine."""
    wire = [link("a", latency=10, engines=1)]
    transfers = run((0, wire, 10**6), (5, wire, 0), (5, [], 7))
    assert transfers.ends == {0: 10 + 10**6, 1: 15, 2: 5}
    assert transfers.starts == [(0, 0, -1), (1, 5, -1), (2, 5, -1)]


def test_a_copy_engine_is_held_for_the_time_of_its_own_link() -> None:
    """Two engines: the third copy starts when the first one has left the PCIe link, not when it has arrived."""
    pcie, nic = link("gpu", 10**9, 0, 2), link("nic", 10**8, 7)
    transfers = run(*[(0, [pcie, nic], 1000)] * 2, (0, [pcie], 500))
    assert transfers.starts == [(0, 0, -1), (1, 0, -1), (2, 1000, 0)]
    assert transfers.ends[0] == transfers.ends[1] == 7 + 20_000
    assert transfers.ends[2] == 1000 + 500 * 10 // 9 + 1


def test_no_transfer_overtakes_one_that_waits_for_the_same_engine() -> None:
    """Transfer 2 needs two engines of which one is free; transfer 3 needs the free one, and comes after it."""
    left, right = link("left", engines=1), link("right", engines=1)
    transfers = run((0, [left], 1000), (1, [left, right], 100), (2, [right], 10), (3, [link("other", engines=1)], 10))
    assert transfers.starts == [(0, 0, -1), (3, 3, -1), (1, 1000, 0), (2, 1100, 1)]


def test_transfers_of_one_instant_start_in_the_order_of_their_numbers() -> None:
    """Whoever asks first."""
    transfers, route = Transfers(), Route((link("a", engines=1),))
    for number in (2, 0, 1):
        transfers.ask(5, number, route, 10)
    transfers.env.run()
    assert transfers.starts == [(0, 5, -1), (1, 15, 0), (2, 25, 1)]


def test_an_arrival_may_ask_for_more() -> None:
    """At the same instant, and it starts then."""
    transfers, route = Transfers(), Route((link("a"),))
    transfers.then[0] = partial(transfers.network.request, 1, route, 10)
    transfers.ask(0, 0, route, 10)
    transfers.env.run()
    assert transfers.ends == {0: 10, 1: 20}


LINKS = [
    link(f"link {i}", rate, latency)
    for i, (rate, latency) in enumerate([(10**9, 0), (3 * 10**9, 7), (5 * 10**8, 0)] * 2)
]
REQUESTS = st.lists(
    st.tuples(
        st.integers(0, 2000),
        st.lists(st.sampled_from(LINKS), min_size=1, max_size=4, unique=True),
        st.integers(0, 3000),
    ),
    min_size=1,
    max_size=12,
)


@given(REQUESTS)
def test_the_clock_agrees_with_real_numbers(requests: list[tuple[int, list[Link], int]]) -> None:
    """Every flow ends within a nanosecond per flow of `finish_times`: ends are rounded up one after the other."""
    flows = [
        Flow([x.name for x in links], size, at / 1e9, sum(x.latency_ns for x in links) / 1e9)
        for at, links, size in requests
    ]
    exact = finish_times({x.name: float(x.bandwidth_bytes_per_s) for x in LINKS}, flows)
    slack = (
        2 * len(requests) * max(x.bandwidth_bytes_per_s for x in LINKS) / min(x.bandwidth_bytes_per_s for x in LINKS)
    )
    for end, number in zip(exact, ends(*requests), strict=True):
        assert number == pytest.approx(end * 1e9, rel=1e-9, abs=slack)


@given(REQUESTS)
def test_loads_move_the_bytes_and_stay_within_the_capacity(requests: list[tuple[int, list[Link], int]]) -> None:
    """Over time, the load of a link is its transfers' bytes, but for the rest of a transfer's last nanosecond."""
    network = run(*requests).network
    for wire in LINKS:
        loads = network.loads(wire.name)
        assert all(0 < load <= wire.bandwidth_bytes_per_s * (1 + 1e-12) for _, _, load in loads)
        assert all(a[1] <= b[0] for a, b in pairwise(loads))
        moved = sum((end - start) * load / 1e9 for start, end, load in loads)
        sizes = [size for _, links, size in requests if wire in links]
        rest = len(sizes) * wire.bandwidth_bytes_per_s / 1e9
        assert sum(sizes) * (1 - 1e-9) <= moved <= sum(sizes) * (1 + 1e-9) + rest


def test_loads_of_a_link() -> None:
    """From one change to the next, without idle times; a link that nobody used has none."""
    wire = link("a")
    network = run((0, [wire], 1000), (500, [wire, link("b", 250_000_000)], 250), (5000, [wire], 10)).network
    assert network.loads(wire.name) == [
        (0, 1167, 1e9),
        (1167, 1500, 2.5e8),
        (5000, 5010, 1e9),
    ]
    assert network.loads("nobody's") == []


def test_the_bottleneck_is_the_link_that_limited_for_longest() -> None:
    """Alone it is the slowest link of the route; shared links may be slower still."""
    fast, slow = link("fast", 2 * 10**9), link("slow", 10**9)
    assert run((0, [fast, slow], 1000)).network.bottlenecks == {}
    network = run((0, [fast, slow], 1000), *[(0, [fast], 1000)] * 3).network
    assert network.bottlenecks == {0: fast}
