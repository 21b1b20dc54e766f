"""Max-min fair sharing in real numbers: laws of the rates, solved examples, and files that SimGrid computed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.devices.timing import Flow, finish_times
from partita.devices.timing.hardware.flows import _Links
from partita.errors import InvalidArgumentError

STARS = sorted((Path(__file__).parent / "data").glob("maxmin_star_*.json"))
ROUTES = st.lists(st.lists(st.integers(0, 5), min_size=1, max_size=4, unique=True), min_size=1, max_size=12)
CAPACITIES = st.lists(st.floats(1.0, 1e12), min_size=6, max_size=6)


def ends(links: Mapping[str, float], *flows: tuple[str, float, float, float]) -> list[float]:
    """End of each flow; a route is a text of names of one letter."""
    return finish_times(links, [Flow(tuple(route), *numbers) for route, *numbers in flows])


def fair_rates(capacities: Sequence[float], routes: Sequence[Sequence[int]]) -> list[float]:
    """The rates of flows that all are under way."""
    hops = np.array([(flow, link) for flow, route in enumerate(routes) for link in route], np.intp)
    return list(map(float, _Links(np.array(capacities), hops).fair_rates(np.ones(len(routes), np.bool_))))


@given(CAPACITIES, ROUTES)
def test_no_link_carries_more_than_its_capacity(capacities: list[float], routes: list[list[int]]) -> None:
    """The rates of the flows over a link add up to its capacity at most."""
    rates = fair_rates(capacities, routes)
    for link, capacity in enumerate(capacities):
        carried = sum(rate for rate, route in zip(rates, routes, strict=True) if link in route)
        assert carried <= capacity * (1 + 1e-12)


@given(CAPACITIES, ROUTES)
def test_every_flow_has_a_bottleneck(capacities: list[float], routes: list[list[int]]) -> None:
    """A link of its route is full, and no flow on that link is faster: what defines max-min fairness."""
    rates = fair_rates(capacities, routes)
    for rate, route in zip(rates, routes, strict=True):
        bottlenecks = []
        for link in route:
            there = [r for r, other in zip(rates, routes, strict=True) if link in other]
            full = sum(there) >= capacities[link] * (1 - 1e-9)
            bottlenecks.append(full and rate >= max(there) * (1 - 1e-9))
        assert any(bottlenecks)


@given(st.lists(st.tuples(st.integers(1, 10**9), st.integers(0, 100)), min_size=1, max_size=12))
def test_a_link_that_is_never_idle_moves_its_capacity(flows: list[tuple[int, int]]) -> None:
    """Bytes are conserved: flows that start before the link could be idle end when all bytes have passed."""
    total = sum(size for size, _ in flows)
    starts = [share / 100 * flows[0][0] / total for _, share in flows]
    starts[0] = 0.0
    times = ends({"a": float(total)}, *(("a", size, at, 0.0) for (size, _), at in zip(flows, starts, strict=True)))
    assert max(times) == pytest.approx(1.0, rel=1e-12)


@given(CAPACITIES, ROUTES)
def test_doubling_every_capacity_halves_the_times(capacities: list[float], routes: list[list[int]]) -> None:
    """Exactly: a factor of two is exact in binary numbers."""
    flows = [Flow(tuple(map(str, route)), 1e6 * (i + 1)) for i, route in enumerate(routes)]
    once = finish_times({str(i): c for i, c in enumerate(capacities)}, flows)
    assert finish_times({str(i): 2 * c for i, c in enumerate(capacities)}, flows) == [t / 2 for t in once]


def test_shares_solved_by_hand() -> None:
    """The example of the module, equal shares, and a flow that speeds up when another has ended."""
    assert fair_rates([10.0, 4.0], [[0, 1], [1], [0]]) == [2.0, 2.0, 8.0]
    assert ends({"a": 10.0}, ("a", 100, 0.0, 0.0), ("a", 100, 0.0, 0.0)) == [20.0, 20.0]
    assert ends({"a": 10.0}, ("a", 100, 0.0, 0.0), ("a", 50, 0.0, 0.0)) == [15.0, 10.0]
    assert ends({"a": 10.0, "b": 4.0}, ("ab", 8, 0.0, 0.0), ("b", 2, 0.0, 0.0), ("a", 20, 1.0, 0.0)) == [
        pytest.approx(1 + 6 / 4),
        1.0,
        pytest.approx(1 + 1.5 + (20 - 9) / 10),
    ]


def test_latency_takes_time_and_no_capacity() -> None:
    """Bytes move from start + latency on; until then the link belongs to others."""
    assert ends({"a": 10.0}, ("a", 100, 0.0, 0.0), ("a", 10, 0.0, 10.0)) == [10.0, 11.0]
    assert ends({"a": 10.0}, ("a", 100, 1.0, 2.0)) == [13.0]


def test_nothing_to_move_takes_the_latency() -> None:
    """0 bytes, and an empty route."""
    assert ends({"a": 1.0}, ("a", 0, 3.0, 2.0), ("", 5, 1.0, 0.5)) == [5.0, 1.5]
    assert finish_times({}, []) == []


def test_a_link_named_twice_counts_once() -> None:
    """A route is a set of links."""
    assert ends({"a": 10.0}, ("aa", 100, 0.0, 0.0)) == [10.0]


@pytest.mark.parametrize(
    ("links", "flow", "message"),
    [
        ({"uplink": 1.0}, Flow(["upling"], 1.0), "flow 0: there is no link 'upling'; did you mean 'uplink'?"),
        ({"a": 0.0}, Flow(["a"], 1.0), "link 'a': 0.0 bytes/s must be a finite number above 0"),
        ({"a": float("nan")}, Flow(["a"], 1.0), "link 'a': nan bytes/s"),
        ({"a": 1.0}, Flow(["a"], -1.0), "flow 0: size_bytes = -1.0 must be a finite number of at least 0"),
        ({"a": 1.0}, Flow(["a"], float("inf")), "size_bytes = inf"),
        ({"a": 1.0}, Flow(["a"], 1.0, float("nan")), "start_s = nan must be a finite number"),
        ({"a": 1.0}, Flow(["a"], 1.0, 0.0, -1e-9), "latency_s = -1e-09"),
        ({"a": 1.0}, Flow("a", 1.0), "route 'a' is one text"),
    ],
)
def test_wrong_numbers_are_refused(links: dict[str, float], flow: Flow, message: str) -> None:
    """Each by name, with what it must be."""
    with pytest.raises(InvalidArgumentError) as error:
        finish_times(links, [flow])
    assert message in str(error.value)


def test_a_figure_of_simgrid() -> None:
    """A flow that shares with nobody, from maxmin_star_N8_F20_seed3.json (SimGrid 3.32, CM02, host 3 to host 1)."""
    assert ends({"u": 10e9, "d": 2e9}, ("ud", 64_000_000, 0.010819, 2e-6)) == [pytest.approx(0.042821, rel=1e-12)]


@pytest.mark.parametrize("path", STARS, ids=lambda path: path.stem)
def test_stars_of_simgrid(path: Path) -> None:
    """Flows over hosts of different rates end when SimGrid says, to 1e-12."""
    star = json.loads(path.read_text())
    links = {f"{end} {link['host']}": link[f"{end}_Bps"] for link in star["links"] for end in ("up", "down")}
    latency = {link["host"]: link["latency_s"] for link in star["links"]}
    flows = [
        Flow(
            (f"up {flow['src']}", f"down {flow['dst']}"),
            flow["bytes"],
            flow["start_s"],
            latency[flow["src"]] + latency[flow["dst"]],
        )
        for flow in star["flows"]
    ]
    assert finish_times(links, flows) == pytest.approx([flow["finish_s"] for flow in star["flows"]], rel=1e-12, abs=0)
