"""Network ports and switches of cluster files: which links a route takes, their rates, what is refused."""

from __future__ import annotations

import pytest

from partita.devices import Cluster, parse_cluster
from partita.errors import InvalidArgumentError

MACHINES = """
[[device]]
job = "worker"
tasks = 4
spec = "H100-SXM"
count = 4
"""
NIC = '\n[[nic]]\nlink = "200 Gb InfiniBand"\n'
THIRD = "/job:worker/replica:0/task:2"


def links(cluster: Cluster, src: str, dst: str) -> list[str]:
    """Ends of the links between two devices in short names, without the job."""
    route = cluster.topology.route(cluster.find(src).name, cluster.find(dst).name)
    return [f"{x.source} -> {x.destination}".replace("/job:worker/replica:0/task:", "") for x in route.links]


def test_without_tables_a_machine_has_one_port() -> None:
    """That of the network."""
    cluster = parse_cluster(MACHINES)
    assert links(cluster, "task 0 gpu:3", "task 1 cpu:0") == ["0/device:GPU:3 -> 0", "0 -> network", "network -> 1"]


def test_devices_use_ports_in_blocks() -> None:
    """Of two ports GPUs 0 and 1 use the first; a port that names devices is theirs."""
    cluster = parse_cluster(MACHINES + NIC + "count = 2")
    ports = [links(cluster, f"task 0 gpu:{i}", "task 1 cpu:0")[1] for i in range(4)]
    assert ports == [f"0 nic:{i} -> network" for i in (0, 0, 1, 1)]
    cluster = parse_cluster(MACHINES + NIC + NIC + 'devices = ["gpu:2"]' + NIC)
    ports = [links(cluster, f"task 0 gpu:{i}", "task 1 cpu:0")[1] for i in range(4)]
    assert ports == [f"0 nic:{i} -> network" for i in (0, 0, 1, 2)]


def test_machines_may_have_ports_of_their_own() -> None:
    """They have none of those for all; the slower end decides."""
    own = f'\n[[nic]]\nhosts = ["{THIRD}"]\nbandwidth = "3 GB/s"\nlatency = "7 us"\n'
    topology = parse_cluster(MACHINES + NIC + own).topology
    there = topology.route("/job:worker/replica:0/task:0/device:CPU:0", f"{THIRD}/device:CPU:0")
    back = topology.route(f"{THIRD}/device:CPU:0", "/job:worker/replica:0/task:0/device:CPU:0")
    assert [x.bandwidth_bytes_per_s // 10**9 for x in there.links] == [25, 3]
    assert [x.bandwidth_bytes_per_s // 10**9 for x in back.links] == [3, 25]
    assert (there.latency_ns, back.latency_ns) == (3000, 7000)


MESH = """
[[mesh]]
bandwidth = "25 GB/s"
latency = "2 us"
pairs = ["gpu:0 gpu:1 x2", "gpu:1 gpu:2"]
"""
SOCKETS = """
[[switch]]
kind = "socket"
devices = ["gpu:0", "gpu:1"]
bandwidth = "20 GB/s"
latency = "1 us"

[[switch]]
kind = "socket"
devices = ["gpu:2", "gpu:3"]
bandwidth = "10 GB/s"
"""


def test_links_that_join_pairs_are_their_route() -> None:
    """All links of the pair at once, in each direction; pairs without any go through their host."""
    topology = parse_cluster(MACHINES + MESH).topology
    gpus = [f"/job:worker/replica:0/task:1/device:GPU:{i}" for i in range(4)]
    there, back = topology.route(gpus[0], gpus[1]), topology.route(gpus[1], gpus[0])
    assert [link.bandwidth_bytes_per_s for link in (*there.links, *back.links)] == [50 * 10**9] * 2
    assert there.links[0] is not back.links[0]
    assert [link.bandwidth_bytes_per_s for link in topology.route(gpus[2], gpus[1]).links] == [25 * 10**9]
    assert [link.model for link in topology.route(gpus[0], gpus[2]).links] == ["PCIe5 x16"] * 2
    assert [link.model for link in topology.route(gpus[3], gpus[0]).links] == ["PCIe5 x16"] * 2


def test_between_sockets_there_is_one_link_in_each_direction() -> None:
    """That of the slower socket; devices of one socket, and what goes to the host, do not need it."""
    cluster = parse_cluster(MACHINES.replace("H100-SXM", "A100-PCIe") + SOCKETS)
    assert links(cluster, "task 0 gpu:0", "task 0 gpu:1") == ["0/device:GPU:0 -> 0", "0 -> 0/device:GPU:1"]
    crossing = ["0/device:GPU:1 -> 0", "0 socket 0 -> 0 socket 1", "0 -> 0/device:GPU:3"]
    assert links(cluster, "task 0 gpu:1", "task 0 gpu:3") == crossing
    assert links(cluster, "task 0 gpu:3", "task 0 cpu:0") == ["0/device:GPU:3 -> 0"]
    topology = cluster.topology
    routes = [topology.route(f"{THIRD}/device:GPU:{a}", f"{THIRD}/device:GPU:{b}") for a, b in ((0, 2), (1, 3), (2, 0))]
    assert routes[0].links[1] is routes[1].links[1] is not routes[2].links[1]
    assert routes[0].links[1].bandwidth_bytes_per_s == routes[2].links[1].bandwidth_bytes_per_s == 10 * 10**9


def test_leaves_and_spine() -> None:
    """Machines of one leaf do not meet the spine; rates come from what is below, over the oversubscription."""
    leaf = '\n[[switch]]\nkind = "leaf"\nsize = 2\noversubscription = 4\nlatency = "1 us"\n'
    cluster = parse_cluster(MACHINES + NIC + leaf)
    assert links(cluster, "task 0 cpu:0", "task 1 cpu:0") == ["0 -> leaf 0", "leaf 0 -> 1"]
    crossing = ["1 -> leaf 0", "leaf 0 -> spine", "spine -> leaf 1", "leaf 1 -> 2"]
    assert links(cluster, "task 1 cpu:0", "task 2 cpu:0") == crossing
    spine = '\n[[switch]]\nkind = "spine"\noversubscription = 2.5\nlatency = "2 us"\n'
    cluster = parse_cluster(MACHINES + NIC + leaf + spine)
    crossing.insert(2, "spine -> spine")
    assert links(cluster, "task 1 cpu:0", "task 2 cpu:0") == crossing
    route = cluster.topology.route(cluster.find("task 1 cpu:0").name, cluster.find("task 2 cpu:0").name)
    assert [x.bandwidth_bytes_per_s for x in route.links] == [25 * 10**9, 125 * 10**8, 10**10, 125 * 10**8, 25 * 10**9]
    assert route.latency_ns == 3000 + 1000 + 2000


def test_a_pcie_switch_stands_between_devices_and_host() -> None:
    """Devices below it reach each other, and a port below it, without passing upwards."""
    switch = '\n[[switch]]\nkind = "pcie"\ndevices = ["gpu:0", "gpu:1"]\noversubscription = 2\nnics = [0]\n'
    plain = MACHINES.replace(
        '"H100-SXM"',
        '{ kind = "GPU", memory = "1 GB", memory_bandwidth = "1 GB/s", peak_flops = { fp32 = "1 TFLOP/s" } }',
    )
    cluster = parse_cluster(plain + NIC + "count = 2\n" + switch)
    up, down = "0 PCIe switch 0 -> 0", "0 -> 0 PCIe switch 0"
    assert links(cluster, "task 0 gpu:0", "task 0 cpu:0") == ["0/device:GPU:0 -> 0", up]
    assert links(cluster, "task 0 cpu:0", "task 0 gpu:1") == [down, "0 -> 0/device:GPU:1"]
    assert links(cluster, "task 0 gpu:0", "task 0 gpu:1") == ["0/device:GPU:0 -> 0", "0 -> 0/device:GPU:1"]
    assert links(cluster, "task 0 gpu:0", "task 0 gpu:2") == ["0/device:GPU:0 -> 0", up, "0 -> 0/device:GPU:2"]
    assert links(cluster, "task 0 gpu:0", "task 1 cpu:0")[:2] == ["0/device:GPU:0 -> 0", "0 nic:0 -> network"]
    route = cluster.topology.route(cluster.find("task 0 gpu:0").name, cluster.find("task 0 cpu:0").name)
    assert [x.bandwidth_bytes_per_s for x in route.links] == [31 * 10**9] * 2
    assert [x.copy_engines for x in route.links] == [2, 0]


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        (
            '[[nic]]\nlink = "200 Gb InfiniBnd"',
            "nic 0: the catalog has no link '200 Gb InfiniBnd'; did you mean '200 Gb InfiniBand'?",
        ),
        (NIC + "cuont = 2", "nic 0: unknown key 'cuont'; did you mean 'count'?"),
        (NIC + "count = 0", "nic 0: count = 0 must be a whole number of at least 1"),
        (NIC + f'hosts = ["{THIRD}0"]', f"hosts: there is no machine '{THIRD}0'; did you mean '{THIRD}'?"),
        (NIC + 'devices = ["gpu:4"]', "nic 0: devices: no machine has a 'gpu:4'; did you mean 'gpu:"),
        (
            '[[switch]]\nkind = "leave"',
            "switch 0: kind = 'leave' must be 'leaf', 'spine', 'pcie', 'socket'; did you mean 'leaf'?",
        ),
        ('[[switch]]\nkind = "leaf"\nsize = 2', "switch 0: give either bandwidth"),
        ('[[switch]]\nkind = "leaf"\nbandwidth = "1 GB/s"', "needs either hosts (a list) or size"),
        ('[[switch]]\nkind = "leaf"\noversubscription = 0\nsize = 1', "oversubscription = 0 must be a number above 0"),
        ('[[switch]]\nkind = "leaf"\nbandwidth = "5"\nsize = 1', "switch 0: bandwidth: '5' is no bandwidth"),
        ('[[switch]]\nkind = "spine"\nsize = 1', "switch 0 (spine): unknown key 'size'"),
        ('[[switch]]\nkind = "spine"\noversubscription = 1', "a spine joins leaf switches, and there are none"),
        ('[[switch]]\nkind = "pcie"\noversubscription = 1', "a PCIe switch needs devices"),
        ('[[switch]]\nkind = "socket"\nbandwidth = "1 GB/s"', "a socket needs devices"),
        ('[[switch]]\nkind = "socket"\ndevices = ["gpu:0"]', "a socket needs a bandwidth"),
        (MESH.replace("pairs", "pair"), "mesh 0: unknown key 'pair'; did you mean 'pairs'?"),
        (MESH.replace("x2", "times 2"), "mesh 0: pairs: 'gpu:0 gpu:1 times 2' is no pair; write"),
        (MESH.replace("gpu:1 gpu:2", "gpu:2 gpu:2"), "'gpu:2 gpu:2' is no pair"),
        (MESH.replace("gpu:1 gpu:2", "gpu:1 gpu:4"), "mesh 0: pairs: no machine has a 'gpu:4'"),
        (MESH.replace("gpu:1 gpu:2", "gpu:1 gpu:0"), "pairs: gpu:0 and gpu:1 stand twice; write a count"),
        ('[[mesh]]\nlink = "NVLink2 link"', "a mesh needs pairs"),
        (
            f'[[switch]]\nkind = "leaf"\nhosts = ["{THIRD}"]\noversubscription = 1',
            "machine '/job:worker/replica:0/task:0' has no leaf switch; give every machine one",
        ),
    ],
)
def test_wrong_tables_are_refused(tables: str, message: str) -> None:
    """The text names the table, the key and what it must be."""
    with pytest.raises(InvalidArgumentError) as error:
        parse_cluster(MACHINES + "\n" + tables)
    assert message in str(error.value)
