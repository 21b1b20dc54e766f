"""The machines that measured runs ran on: a number of GPUs -> a Machine.

All have eight GPUs joined by NVSwitches. vTrain's send 800 Gb/s a node, which are four ports of 200 Gb/s, two GPUs
each; those of the Megatron papers are the catalog's DGX-A100, with a port a GPU. Runs on fewer GPUs than a node has
leave the others idle.
"""

from __future__ import annotations

from functools import cache

from ....devices.cluster_file import parse_cluster
from ....errors import InvalidArgumentError
from ..machine import Machine

PER_NODE = 8
VTRAIN_PORTS, MEGATRON_PORTS = 4, 8


@cache
def a100_machine(gpus: int, ports: int) -> Machine:
    """A100s of 80 GB with so many ports of 200 Gb/s a node."""
    return _machine("A100-80GB", gpus, f'[[nic]]\nlink = "200 Gb InfiniBand"\ncount = {ports}\n')


@cache
def b200_machine(gpus: int) -> Machine:
    """B200s of one node; InvalidArgumentError for more than it has."""
    if gpus > PER_NODE:
        raise InvalidArgumentError(f"{gpus} B200s are more than the {PER_NODE} of a node; the table has one node")
    return _machine("B200-SXM", gpus, "")


def _machine(gpu: str, gpus: int, network: str) -> Machine:
    nodes, rest = divmod(gpus, PER_NODE)
    if nodes and rest:
        raise InvalidArgumentError(f"{gpus} GPUs are no whole nodes of {PER_NODE}; correct the row or leave it out")
    count = PER_NODE if nodes else rest
    devices = f'[[device]]\nspec = "{gpu}"\njob = "training"\ntasks = {nodes or 1}\ncount = {count}\n'
    return Machine.of(parse_cluster(devices + (network if nodes > 1 else "")))
