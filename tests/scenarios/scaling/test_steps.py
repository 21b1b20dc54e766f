"""Parallel steps: what moves between devices, and on which of them parameters are."""

from __future__ import annotations

import pytest

from partita.devices import simulate
from partita.scenarios.scaling.machines import GPUS, HOST, HOSTS, REPLICAS, ParameterPlace
from partita.scenarios.scaling.steps import StepSetting, parallel_step

WEIGHTS = {"AlexNet": 61_100_840, "ResNet-50": 25_557_032}


def moved(machine: str, network: str, place: ParameterPlace, gpus: int) -> tuple[int, set[str]]:
    """Bytes that are sent in a step of four images a GPU, and the short names of devices with variables."""
    setting = StepSetting(machine, network, place, gpus)
    cluster = setting.cluster()
    step = parallel_step(setting, cluster)
    homes = {
        device.split("task:")[1].replace("/device", "")
        for device, graph in step.partitions.items()
        for node in graph.op_nodes()
        if node.op == "ResourceApplyGradientDescent"
    }
    feeds = {name: (4, *shape) for name, shape in step.fed.items()}
    shapes = {name: ((4, *shape),) for name, shape in step.kept.items()}
    return simulate(step.partitions, cluster, feeds=feeds, shapes=shapes).transferred_bytes, homes


@pytest.mark.parametrize("network", ["AlexNet", "ResNet-50"])
def test_a_host_gets_gradients_and_sends_parameters(network: str) -> None:
    """Each GPU gets every weight and sends a gradient of it, and nothing else but numbers of single elements."""
    sent, homes = moved("DGX-1-P100", network, HOST, 2)
    assert sent == pytest.approx(2 * 2 * 4 * WEIGHTS[network], rel=1e-3)
    assert homes == {"0:CPU:0"}


def test_where_variables_are() -> None:
    """On every GPU, spread over the GPUs, or over the CPUs of all hosts."""
    both = {"0:GPU:0", "0:GPU:1"}
    assert moved("p2.8xlarge", "AlexNet", REPLICAS, 2)[1] == both
    assert moved("p2.8xlarge", "AlexNet", GPUS, 2)[1] == both
    assert moved("p2.8xlarge", "AlexNet", HOSTS, 16)[1] == {"0:CPU:0", "1:CPU:0"}


def test_one_gpu_is_a_replica_too() -> None:
    """A step on one GPU has its parameters where the row says."""
    assert moved("p2.8xlarge", "AlexNet", HOST, 1)[1] == {"0:CPU:0"}
    assert moved("p2.8xlarge", "AlexNet", REPLICAS, 1)[1] == {"0:GPU:0"}
