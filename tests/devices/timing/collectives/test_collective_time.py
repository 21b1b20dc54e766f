"""Collectives over links: what more bytes, ranks and hosts do to the time, and what is refused."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import pytest
from hypothesis import given, strategies as st

from partita.devices import Cluster, Device, LinkSpec, collective_time, device_spec, local_cluster
from partita.devices.timing.collectives.algorithms import EFFICIENCY, GroupWay, fastest
from partita.devices.timing.collectives.kinds import KINDS
from partita.devices.topology import LinkRules
from partita.errors import InvalidArgumentError

SIZES = st.integers(0, 1 << 32)
GROUPED = [kind for kind in KINDS if kind != "send_recv"]


def hosts(count: int, gpus: int, bandwidth: int = 12_500_000_000) -> Cluster:
    """`count` hosts of `gpus` V100s, with one network port each."""
    devices = [Device(device_spec("V100-SXM2"), i, task=t) for t in range(count) for i in range(gpus)]
    return Cluster(devices, LinkRules(network=LinkSpec("net", bandwidth, 2_000)))


@given(st.sampled_from(GROUPED), SIZES, SIZES)
def test_more_bytes_are_never_faster(kind: str, a: int, b: int) -> None:
    """Of two sizes the larger takes at least as long, on one host and on two."""
    for cluster in (hosts(1, 4), hosts(2, 4)):
        times = [collective_time(kind, cluster.names, size, cluster).time_ns for size in sorted((a, b))]
        assert times == sorted(times)


@given(st.sampled_from(GROUPED), SIZES, st.integers(10**8, 10**11), st.integers(1, 20))
def test_more_bandwidth_is_never_slower(kind: str, size: int, bandwidth: int, factor: int) -> None:
    """A network that is faster by any factor never makes a collective slower."""
    slow, fast = hosts(2, 4, bandwidth), hosts(2, 4, bandwidth * factor)
    assert (
        collective_time(kind, fast.names, size, fast).time_ns <= collective_time(kind, slow.names, size, slow).time_ns
    )


@given(st.sampled_from(GROUPED), SIZES, st.randoms(use_true_random=False))
def test_the_order_of_ranks_does_not_matter(kind: str, size: int, random: object) -> None:
    """Any order of the same ranks costs the same."""
    cluster = hosts(2, 4)
    names = list(cluster.names)
    random.shuffle(names)  # type: ignore[attr-defined]  # hypothesis types it as an object
    assert collective_time(kind, names, size, cluster) == collective_time(kind, cluster.names, size, cluster)


@given(st.integers(1 << 20, 1 << 32))
def test_hosts_are_reduced_inside_first(size: int) -> None:
    """An all-reduce of two hosts of eight is faster than a flat ring whose sixteen ranks share two ports."""
    cluster = hosts(2, 8)
    cost = collective_time("all_reduce", cluster.names, size, cluster)
    flat = 2 * 15 / 16 * size / (12.5 * EFFICIENCY)
    assert cost.time_ns < flat
    assert cost.low_ns < cost.time_ns < cost.high_ns
    assert cost.algorithm.startswith("hierarchical")


def test_ranks_of_a_host_share_its_port() -> None:
    """Between hosts a shared port moves the whole buffer: at least its bytes / its rate, however many ranks share."""
    size = 1 << 30
    for gpus in (1, 2, 4, 8):
        cluster = hosts(2, gpus)
        assert collective_time("all_reduce", cluster.names, size, cluster).time_ns >= size / 12.5


@given(SIZES)
def test_a_permute_takes_what_its_slowest_pair_takes(size: int) -> None:
    """A send between two GPUs of a host, or over the network where the ring leaves a host: ports are not shared."""
    host = local_cluster("gpu:8")
    gpus = [name for name in host.names if "GPU" in name]
    assert time_of("permute", gpus, size, host) == time_of("send_recv", gpus[:2], size, host)
    slow = hosts(3, 4, 10**9)
    pair = [slow.names[3], slow.names[4]]
    assert time_of("permute", slow.names, size, slow) == time_of("send_recv", pair, size, slow)
    fast = hosts(2, 2, 10**13)
    assert time_of("permute", fast.names, size, fast) >= time_of("send_recv", fast.names[:2], size, fast)


def time_of(kind: str, ranks: Sequence[str], size: int, cluster: Cluster) -> int:
    """Nanoseconds of a collective."""
    return collective_time(kind, ranks, size, cluster).time_ns


def test_short_messages_take_a_low_latency_protocol() -> None:
    """Few bytes go by LL, many by the protocol that uses the whole bandwidth."""
    way = GroupWay(450e9, 2_000)
    assert fastest("all_reduce", 8, 1024, way).protocol == "LL"
    assert fastest("all_reduce", 8, 1 << 30, way).protocol == "Simple"


def test_a_switch_that_reduces_halves_the_bytes() -> None:
    """With many ranks a reducing switch moves each byte once, a ring almost twice."""
    ring = fastest("all_reduce", 64, 1 << 32, GroupWay(450e9, 2_000))
    switch = fastest("all_reduce", 64, 1 << 32, GroupWay(450e9, 2_000, reduces_in_switch=True))
    assert switch.algorithm == "switch"
    assert Fraction(switch.time_ns) < Fraction(ring.time_ns) * 6 / 10


@pytest.mark.parametrize(
    ("kind", "ranks", "size", "text"),
    [
        ("all_reduse", ["gpu:0", "gpu:1"], 1, "did you mean 'all_reduce'"),
        ("all_reduce", ["gpu:0"], 1, "needs at least two"),
        ("all_reduce", ["gpu:0", "gpu:0"], 1, "given twice"),
        ("all_reduce", ["gpu:0", "gpu:7"], 1, "is no device of this cluster"),
        ("all_reduce", ["gpu:0", "gpu:1"], -1, "0 or more"),
        ("send_recv", ["gpu:0", "gpu:1", "cpu:0"], 1, "a sender and a receiver"),
    ],
)
def test_wrong_arguments_are_refused(kind: str, ranks: list[str], size: int, text: str) -> None:
    """A wrong kind, group or size is an InvalidArgumentError that says what to do."""
    with pytest.raises(InvalidArgumentError, match=text):
        collective_time(kind, ranks, size, local_cluster("gpu:2"))
