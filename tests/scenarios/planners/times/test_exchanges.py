"""Where the ranks of groups are, and what their collectives take: as the mesh and single collectives say."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.devices.timing.collectives.collective_time import collective_time
from partita.graph.parallel.mesh.mesh import Mesh
from partita.scenarios import Split
from partita.scenarios.planners.configurations import Configurations
from partita.scenarios.planners.step import PlannedStep
from partita.scenarios.planners.times.exchanges import AxisGroups, ExchangeTimes, exchange_times, groups_along
from tests.scenarios.planners.times.drawn import STEPS, few, hosts_of, machine, same, steps, tables, times_of

AXES = {"tp": "tp", "cp": "cp", "ep": "ep", "dp": "dp+cp", "experts": "edp+cp+tp", "pp": "pp"}
"""by axis of the closed form those of the mesh"""
KINDS = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all")
powers = st.sampled_from([1, 2, 4, 8, 16])


def total(of: ExchangeTimes) -> Any:  # Any: a column
    return of.inside_ns + of.fixed_ns + of.wire_ns


def asked(kind: str, inside: int, hosts: int, size: float, used: int, on: Any) -> float:  # Any: a Machine
    """One collective of the columns."""
    groups = AxisGroups(np.array([inside]), np.array([hosts]))
    return float(total(exchange_times(on, kind, groups, np.array([float(size)]), np.array([used])))[0])


@given(powers, powers, powers, powers, powers, st.sampled_from([2, 4, 8]), st.sampled_from(sorted(AXES)))
def test_groups_lie_on_hosts_as_the_mesh_says(
    tp: int, cp: int, dp: int, ep: int, pp: int, per_host: int, axis: str
) -> None:
    """Ranks of a group on its first host, and hosts: counted one by one."""
    ep = min(ep, dp)
    split = Split(tp=tp, cp=cp, dp=dp, ep=ep, pp=pp)
    groups = groups_along(axis, Configurations.of([split]), per_host)
    hosts = Counter(rank // per_host for rank in Mesh(tp=tp, cp=cp, dp=dp, ep=ep, pp=pp).group(AXES[axis], 0))
    assert set(hosts.values()) == {int(groups.inside[0])}
    assert len(hosts) == groups.hosts[0]


@given(
    st.sampled_from(KINDS),
    st.sampled_from([(1, 2, 8), (1, 8, 8), (2, 1, 8), (2, 4, 8), (2, 8, 8), (2, 8, 4), (2, 8, 2)]),
    st.floats(3, 9),
)
def test_one_collective_takes_what_it_takes_by_itself(kind: str, group: tuple[int, int, int], log_bytes: float) -> None:
    """Inside a host and between hosts: `collective_time` of the same ranks, if those of a host have all its ports."""
    (hosts, inside, ports), size = group, int(10**log_bytes)
    on = hosts_of(2, 8, ports)
    names = [device.name for host in on.by_host[:hosts] for device in host[:inside]]
    alone = collective_time(kind, names, size, on.cluster).time_ns
    assert asked(kind, inside, hosts, size, inside, on) == pytest.approx(alone, rel=1e-4)


@given(
    st.sampled_from((*KINDS, "send_recv")),
    st.sampled_from([(1, 1), (2, 1), (8, 1), (1, 4), (4, 4), (8, 8)]),
    st.floats(3, 9),
    st.floats(1, 10),
)
def test_more_bytes_take_no_less(kind: str, group: tuple[int, int], log_bytes: float, times: float) -> None:
    """Measured curves may fall by a little from point to point. A group of one rank takes nothing."""
    small, large = (asked(kind, *group, size, 8, machine()) for size in (10**log_bytes, times * 10**log_bytes))
    assert small <= large * (1 if group == (1, 4) else 1.1)
    assert (large > 0) == (group != (1, 1))


@given(st.sampled_from(KINDS), st.sampled_from([1, 2, 4, 8]), st.sampled_from([2, 4]), st.floats(5, 9))
def test_gpus_that_use_ports_too_take_their_share(kind: str, inside: int, ports: int, log_bytes: float) -> None:
    times = [asked(kind, inside, 4, 10**log_bytes, used, hosts_of(4, 8, ports)) for used in (inside, 8)]
    assert times[0] <= times[1] <= 8 / ports * times[0] * (1 + 1e-9) * max(1, ports / inside)


@few
@given(steps, tables(), st.sampled_from([1, 2, 4]))
def test_fewer_ports_make_no_step_faster(step: PlannedStep, rows: list[Split], ports: int) -> None:
    fewer, ample = (times_of(step, hosts_of(8, 8, count), *rows).step_ns for count in (ports, 8))
    assert (fewer >= ample * (1 - 1e-12)).all()


@pytest.mark.parametrize(
    ("axis", "ranks"), [("dp", {"dp": 16}), ("pp", {"tp": 8, "pp": 2}), ("tp", {"tp": 16}), ("cp", {"tp": 8, "cp": 2})]
)
def test_half_the_ports_take_twice_as_long(axis: str, ranks: dict[str, int]) -> None:
    """Of what goes between hosts, but for its latency: all GPUs of a host send at once."""
    split = Split(microbatches=4, precision="bfloat16", **ranks)  # type: ignore[arg-type]  # numbers by name
    eight, four = (times_of(STEPS["llama"], hosts_of(2, 8, count), split).by_category for count in (8, 4))
    assert 1.3 < four[axis] / eight[axis] < 2.001
    for name in ("products", "attention", "memory_bound", "optimizer", *({"tp", "pp"} - {axis})):
        assert same(four[name], eight[name]), name


@pytest.mark.parametrize("name", STEPS)
def test_tensor_parallelism_over_hosts_is_slower(name: str) -> None:
    split = Split(tp=8, dp=2, microbatches=8, precision="bfloat16")
    inside, over = (times_of(STEPS[name], on, split) for on in (hosts_of(2, 8, 8), hosts_of(4, 4, 4)))
    assert over.by_category["tp"] > 2 * inside.by_category["tp"]
    assert over.step_ns > inside.step_ns
