"""A cluster as a JSON document comes back as it was, and nothing else is taken for one."""

from __future__ import annotations

import copy
import json

import pytest

from partita.devices import Cluster, local_cluster, parse_cluster
from partita.devices.cluster_document import cluster_from_document, cluster_to_document
from partita.devices.link import LinkSpec
from partita.devices.topology import LinkRules
from partita.errors import InvalidArgumentError, PartitaError

EVERYTHING = """
[[host]]
model = "DGX-H100"
job = "trainer"
tasks = 2

[[device]]
job = "reader"
host = "rack"
spec = "Xeon-8480+"
price = "2.50 $/h"
power = "400 W"
mtbf = "50000 h"

[[switch]]
kind = "leaf"
hosts = ["/job:trainer/replica:0/task:0", "/job:trainer/replica:0/task:1", "rack"]
oversubscription = 1.5

[[slow]]
device = "/job:trainer/replica:0/task:0/device:GPU:0"
factor = 1.5
random = { seed = 7, every = "10 us", lasts = "5 us" }

[[degrade]]
link = "400 Gb InfiniBand"
factor = 4
to = "1 ms"

[[link]]
between = ["/job:trainer/replica:0/task:0/device:GPU:0", "/job:trainer/replica:0/task:0/device:GPU:1"]
bandwidth = "25 GB/s"
latency = "2 us"
"""
CLUSTERS = {
    "everything": parse_cluster(EVERYTHING),
    "restarted": local_cluster("cpu:2,gpu:2").with_restarted("gpu:1").without_tf32(),
    "rules": local_cluster(
        "gpu:2", rules=LinkRules(network=LinkSpec("wire", 10), hosts={"GPU": LinkSpec("bus", 7, 3)})
    ),
    "sockets": parse_cluster('[[host]]\nmodel = "DGX-1-V100"\n'),
}


def written(cluster: Cluster) -> object:
    """The document, as a file has it."""
    return json.loads(json.dumps(cluster_to_document(cluster), allow_nan=False))


@pytest.mark.parametrize("name", CLUSTERS)
def test_clusters_come_back(name: str) -> None:
    """Devices with costs, rules with fabric, profiles; and devices go on sharing their specs."""
    cluster = CLUSTERS[name]
    read = cluster_from_document(written(cluster), "x")
    assert read.devices == cluster.devices
    assert [d.operating_costs for d in read] == [d.operating_costs for d in cluster]
    assert (read.topology.rules, read.profiles) == (cluster.topology.rules, cluster.profiles)
    assert len({id(device.spec) for device in read}) == len({device.spec for device in cluster})


def test_what_never_fails_comes_back() -> None:
    """Infinity is no number of JSON."""
    cluster = parse_cluster('[[device]]\nspec = "generic-cpu"\n')
    document = cluster_to_document(cluster)
    document["costs"][0]["mtbf_s"] = "inf"
    assert cluster_from_document(document, "x").devices[0].operating_costs.mtbf_s == float("inf")


@pytest.mark.parametrize(
    ("way", "value", "why"),
    [
        (("more",), 1, "extra fields found"),
        (("specs", 0, "memory_bytes"), "1", "must be of type int"),
        (("specs", 0, "memory_bytes"), True, "must be of type int"),
        (("specs", 0, "memory_bytes"), -1, "must be above 0"),
        (("specs", 0, "colour"), "red", "extra fields found"),
        (("devices", "spec", 0), 5, "not listed"),
        (("devices", "index"), [0], "different lengths"),
        (("devices", "incarnation", 0), 0, "incarnation"),
        (("devices", "index", 4), 0, "are called"),
        (("profiles", "slow", 0, 1, "factor"), "1/0", "fraction"),
        (("profiles", "slow", 0, 1, "factor"), 1.5, "fraction"),
        (("rules", "pairs", 0, "first"), "nobody", "not a device"),
        (("rules", "loopback"), None, "rules"),
    ],
)
def test_wrong_documents_are_refused(way: tuple[str | int, ...], value: object, why: str) -> None:
    """Nothing is converted, and unknown keys are refused."""
    document = copy.deepcopy(cluster_to_document(CLUSTERS["everything"]))
    into = document
    for key in way[:-1]:
        into = into[key]
    into[way[-1]] = value
    with pytest.raises(PartitaError, match=why):
        cluster_from_document(document, "x")


def test_another_kind_of_document_is_refused() -> None:
    """A list is none of a cluster."""
    with pytest.raises(InvalidArgumentError, match="must be an object"):
        cluster_from_document([], "x")
