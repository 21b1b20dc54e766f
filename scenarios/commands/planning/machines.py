"""The machines that flags name: of the catalog, or of a file, all of them or the first ones.

--gpus H100-SXM:64                       8 machines of 8, as the catalog has them
--cluster rack.toml, 16 of its GPUs      the first two of its machines
"""

from __future__ import annotations

from attrs import evolve

from ....devices import Cluster, load_cluster, machines_of
from ....errors import InvalidArgumentError
from ..failure import configuring
from .flags import PlanFlags


def machines_with_gpus(text: str) -> Cluster:
    """The machines of the catalog for a text "H100-SXM:64"; ConfigurationError for another one."""
    with configuring("--gpus"):
        return machines_of(text)


def given_machines(flags: PlanFlags) -> Cluster:
    """The machines of the flags; ConfigurationError for a wrong file or text."""
    if flags.cluster is not None:
        with configuring("--cluster"):
            return load_cluster(flags.cluster)
    text = flags.gpus or ""
    if flags.counts and ":" not in text:
        text = f"{text}:{flags.counts[-1]}"
    return machines_with_gpus(text)


def machines_with(flags: PlanFlags, cluster: Cluster, count: int) -> Cluster:
    """The machines of the flags with `count` GPUs: as many of the catalog, or the first ones of the file."""
    with configuring():
        if flags.gpus is not None:
            return machines_of(f"{flags.gpus.partition(':')[0]}:{count}")
        return first_of(cluster, count)


def first_of(cluster: Cluster, count: int) -> Cluster:
    """The cluster of the first `count` accelerators and the machines that they are in.

    InvalidArgumentError where the cluster has fewer.
    """
    if count > len(cluster.ranked):
        raise InvalidArgumentError(f"the cluster has {len(cluster.ranked)} GPUs; give at most so many")
    kept = {device.name for device in cluster.ranked[:count]}
    left_out = {device.name for device in cluster.ranked[count:]}
    tasks = {device.task_name for device in cluster.ranked[:count]}
    devices = [it for it in cluster if it.name in kept or (it.task_name in tasks and it.name not in left_out)]
    rules, names = cluster.topology.rules, {device.name for device in devices}
    pairs = {pair: link for pair, link in rules.pairs.items() if names.issuperset(pair)}
    return Cluster(devices, evolve(rules, pairs=pairs), cluster.profiles)
