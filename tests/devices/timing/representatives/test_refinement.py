"""Classes of flows and links: what a class promises, and that max-min fair rates keep the promise."""

from __future__ import annotations

from collections import defaultdict

from hypothesis import given, strategies as st

from partita.devices.timing.hardware.flows import Flow, finish_times
from partita.devices.timing.representatives.refinement import flow_classes
from partita.devices.topology import Link, Route

RATES = (10, 20)


def links(rates: list[int]) -> list[Link]:
    """Links of these rates, with names of their own."""
    return [Link(f"p{n}", "network", "model", rate, 0) for n, rate in enumerate(rates)]


@st.composite
def flows(draw: st.DrawFn) -> list[Route]:
    """Routes over a few links."""
    ports = links(draw(st.lists(st.sampled_from(RATES), min_size=2, max_size=8)))
    chosen = st.lists(st.sampled_from(ports), min_size=1, max_size=3, unique=True)
    return [Route(tuple(way)) for way in draw(st.lists(chosen, min_size=1, max_size=12))]


@given(flows(), st.data())
def test_flows_of_a_class_end_together(routes: list[Route], data: st.DataObject) -> None:
    """Whatever families are under way: flows of one class, of equal sizes, get equal rates all the time."""
    families = [data.draw(st.integers(0, 2)) for _ in routes]
    sizes = {family: data.draw(st.sampled_from([100.0, 300.0])) for family in set(families)}
    classes = flow_classes(routes, families, lambda link: link.bandwidth_bytes_per_s)
    active = data.draw(st.sets(st.sampled_from(sorted(set(families))), min_size=1))
    under_way = [n for n, family in enumerate(families) if family in active]
    capacity = {link.name: float(link.bandwidth_bytes_per_s) for route in routes for link in route.links}
    ends = finish_times(
        capacity, [Flow([link.name for link in routes[n].links], sizes[families[n]]) for n in under_way]
    )
    by_class = defaultdict(set)
    for n, end in zip(under_way, ends, strict=True):
        by_class[int(classes.of_flow[n])].add(round(end, 6))
    assert all(len(of_class) == 1 for of_class in by_class.values())


@given(flows())
def test_counts_are_those_of_every_link_of_a_class(routes: list[Route]) -> None:
    """On each link of a class as many flows of each class as `counts` says."""
    classes = flow_classes(routes, [0] * len(routes), lambda link: link.bandwidth_bytes_per_s)
    for link in classes.links:
        own = int(classes.of_link[classes.number_of[id(link)]])
        crossing: defaultdict[int, int] = defaultdict(int)
        for number, route in enumerate(routes):
            if link in route.links:
                crossing[int(classes.of_flow[number])] += 1
        assert dict(crossing) == {kind: count for (kind, of_link), count in classes.counts.items() if of_link == own}


def test_a_ring_is_one_class_and_a_port_counts_its_flows() -> None:
    """Eight flows of a ring are one class; four of them that leave by one port count four there."""
    out, into = links([10] * 8), [Link("network", f"p{n}", "model", 10, 0) for n in range(8)]
    ring = [Route((out[n], into[(n + 1) % 8])) for n in range(8)]
    assert len(set(flow_classes(ring, [0] * 8, lambda link: link.bandwidth_bytes_per_s).of_flow.tolist())) == 1
    port = Link("host", "network", "port", 40, 0)
    shared = [Route((out[n], port)) for n in range(4)]
    classes = flow_classes(shared, [0] * 4, lambda link: link.bandwidth_bytes_per_s)
    assert sorted(classes.counts.values()) == [1, 4]


def test_links_that_are_not_alike_split_the_flows() -> None:
    """A ring with one faster link: no two flows are as near to it."""
    out = links([10] * 3 + [20])
    ring = [Route((out[n], out[(n + 1) % 4])) for n in range(4)]
    classes = flow_classes(ring, [0] * 4, lambda link: link.bandwidth_bytes_per_s)
    assert len(set(classes.of_flow.tolist())) == 4
