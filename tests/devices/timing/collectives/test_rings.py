"""Rings over links that join ranks in pairs: what every set of them keeps, and those of known machines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import combinations, permutations

import pytest
from hypothesis import given, settings, strategies as st

from partita.devices import LinkSpec, collective_time, device_spec, parse_cluster
from partita.devices.calibration.fitting.meshes import first_rings
from partita.devices.cluster import Cluster
from partita.devices.device import Device
from partita.devices.fabric import FabricRules, MeshRule, PairLinks
from partita.devices.timing.collectives.explained import explanation_of_plan
from partita.devices.timing.collectives.plan import plan_of
from partita.devices.timing.collectives.rings import hops_of, rings_of
from partita.devices.topology import LinkRules

Links = dict[tuple[int, int], int]


@st.composite
def meshes(draw: st.DrawFn, most: int = 7) -> tuple[int, Links]:
    """Ranks, and the links of their pairs, each in both directions."""
    ranks = draw(st.integers(2, most))
    counts = {pair: draw(st.integers(0, 2)) for pair in combinations(range(ranks), 2)}
    return ranks, {way: n for (a, b), n in counts.items() for way in ((a, b), (b, a)) if n}


@given(meshes())
def test_rings_share_no_link_and_visit_every_rank_once(mesh: tuple[int, Links]) -> None:
    """One way round, from rank 0 on."""
    ranks, links = mesh
    rings = rings_of(ranks, links)
    used = Counter(hop for ring in rings for hop in hops_of(ring))
    assert all(sorted(ring) == list(range(ranks)) and ring[0] == 0 for ring in rings)
    assert all(count <= links.get(hop, 0) for hop, count in used.items())


@given(meshes(), st.data())
def test_more_links_never_give_fewer_rings(mesh: tuple[int, Links], data: st.DataObject) -> None:
    """Another link between any two ranks."""
    ranks, links = mesh
    a, b = data.draw(st.sampled_from(list(combinations(range(ranks), 2))))
    more = {**links, (a, b): links.get((a, b), 0) + 1, (b, a): links.get((b, a), 0) + 1}
    assert len(rings_of(ranks, more)) >= len(rings_of(ranks, links))


def most_rings(ranks: int, links: Links) -> int:
    """The largest set, by trying every ring in every place."""
    every = [(0, *rest) for rest in permutations(range(1, ranks))]

    def most(left: Links, first: int) -> int:
        best = 0
        for i in range(first, len(every)):
            hops = list(hops_of(every[i]))
            if all(left.get(hop, 0) for hop in hops):
                best = max(best, 1 + most({**left, **{hop: left[hop] - 1 for hop in hops}}, i))
        return best

    return most(links, 0)


@given(meshes(most=4))
@settings(max_examples=40)
def test_no_larger_set_of_rings_exists(mesh: tuple[int, Links]) -> None:
    """Beside the search that tries everything, up to 4 ranks."""
    assert len(rings_of(*mesh)) == most_rings(*mesh)


@pytest.mark.parametrize(
    ("host", "rings"),
    [
        ("DGX-1-V100", {2: 1, 3: 2, 4: 4, 5: 0, 6: 2, 7: 4, 8: 6}),
        ("DGX-1-P100", {2: 1, 3: 2, 4: 2, 5: 0, 6: 2, 7: 2, 8: 4}),
        ("DGX-H100", {}),
    ],
)
def test_the_first_gpus_of_machines(host: str, rings: dict[int, int]) -> None:
    """Of the cube mesh of V100s as many as a V100's measured bandwidths say; behind a switch there are none."""
    assert first_rings(host) == rings


def mesh_of(pairs: Sequence[tuple[int, int, int]], gpus: int, spec: str = "P100-SXM2") -> Cluster:
    """GPUs of one machine with these links of 20 GB/s."""
    rule = MeshRule(
        LinkSpec("one", 20 * 10**9, 2_000), tuple(PairLinks(f"gpu:{a}", f"gpu:{b}", n) for a, b, n in pairs)
    )
    return Cluster([Device(device_spec(spec), i) for i in range(gpus)], LinkRules(fabric=FabricRules(meshes=(rule,))))


@given(meshes(most=5), st.integers(1, 1 << 30), st.data())
@settings(max_examples=40)
def test_more_links_never_make_an_all_reduce_slower(mesh: tuple[int, Links], size: int, data: st.DataObject) -> None:
    """Where rings visit all ranks, before and after."""
    ranks, links = mesh
    pairs = {(a, b): n for (a, b), n in links.items() if a < b}
    added = data.draw(st.sampled_from(list(combinations(range(ranks), 2))))
    more = {**pairs, added: pairs.get(added, 0) + 1}
    clusters = [mesh_of([(*pair, n) for pair, n in each.items()], ranks) for each in (pairs, more) if each]
    costs = [collective_time("all_reduce", cluster.names, size, cluster) for cluster in clusters]
    if len(costs) == 2 and costs[0].rings:
        assert costs[1].time_ns <= costs[0].time_ns
        assert (costs[1].rings or 0) >= costs[0].rings


def test_the_plan_has_a_flow_for_each_hop_of_each_ring() -> None:
    """Over the links of that pair alone, and together they carry what leaves the ranks."""
    cluster = parse_cluster('[[host]]\nmodel = "DGX-1-V100"')
    names = [f"gpu:{i}" for i in range(4)]
    plan = plan_of("all_reduce", names, 1 << 28, cluster, None)
    (phase,) = plan.phases
    assert len(plan.rings) == plan.cost.rings == 4
    assert len(phase.routes) == 16
    assert all([link.model for link in route.links] == ["NVLink2 link"] for route in phase.routes)
    assert phase.moved_bytes * len(phase.routes) == 1.5 * (1 << 28) * 4
    assert phase.rate / phase.shares == 25e9


def test_ranks_without_a_ring_go_over_pcie() -> None:
    """GPU 4 has links to one of the first four: much slower, said so, and with a wide interval."""
    cluster = parse_cluster('[[host]]\nmodel = "DGX-1-V100"')
    five, four = (collective_time("all_reduce", [f"gpu:{i}" for i in range(n)], 1 << 28, cluster) for n in (5, 4))
    assert (five.rings, four.rings) == (0, 4)
    assert five.time_ns > 5 * four.time_ns
    assert five.high_ns / five.time_ns > 1.5 > 1.2 > four.high_ns / four.time_ns
    assert five.provenance == "transferred"


def test_the_rings_are_printed() -> None:
    """Their number and their members; where there is none, that too, and that nobody measured it."""
    cluster = parse_cluster('[[host]]\nmodel = "DGX-1-V100"')
    three, five = (
        explanation_of_plan("Reduce", plan_of("all_reduce", [f"gpu:{i}" for i in range(n)], 1 << 20, cluster, None))
        for n in (3, 5)
    )
    assert three.inputs["rings"] == "2: gpu:0 1 2; gpu:0 2 1"
    assert five.inputs["rings"] == "none"
    assert any("never measured" in sentence for sentence in five.assumed)
    switched = parse_cluster('[[host]]\nmodel = "DGX-H100"')
    told = explanation_of_plan("Reduce", plan_of("all_reduce", ["gpu:0", "gpu:1"], 1 << 20, switched, None))
    assert "rings" not in told.inputs
    assert "NCCL 2.29.2" in told.formula


def test_which_gpus_take_part_decides() -> None:
    """GPUs 0 and 3 have two links, 0 and 1 one, 0 and 5 none."""
    cluster = parse_cluster('[[host]]\nmodel = "DGX-1-V100"')
    times = [collective_time("all_reduce", ["gpu:0", f"gpu:{i}"], 1 << 30, cluster) for i in (3, 1, 5)]
    assert [cost.rings for cost in times] == [2, 1, 0]
    assert times[1].time_ns == pytest.approx(2 * times[0].time_ns, rel=0.01)
    assert times[2].time_ns > times[1].time_ns
