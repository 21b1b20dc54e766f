"""What the texts of a benchmark row of 2017 mean: the machines, and where parameters were while a step ran.

    "DGX-1 P100", "parameter_server(cpu)", "ResNet-50"                 DGX-1-P100, "host"
    "EC2 p2.8xlarge 8xK80", "see source", "VGG16"                      p2.8xlarge, "gpus"
    "EC2 p2.8xlarge distributed (8 K80/host)", "distributed_replicated"    p2.8xlarge, "hosts"

The page is TensorFlow's "Benchmarks" of 2017, made with tf_cnn_benchmarks. Where a row says "see source" or "as above",
the settings are those of the page as recalled, which nobody verified.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from ..workloads.image_training import NETWORKS

ParameterPlace = Literal["host", "gpus", "replicas", "hosts"]
"""variables are on the CPU; spread over the GPUs; on every GPU, gradients all-reduced; spread over the CPUs of all
hosts, where the gradients of a host arrive as one sum and from where a host reads each variable once"""

HOST: ParameterPlace = "host"
GPUS: ParameterPlace = "gpus"
REPLICAS: ParameterPlace = "replicas"
HOSTS: ParameterPlace = "hosts"

MACHINES: Mapping[str, str] = {
    "DGX-1 P100": "DGX-1-P100",
    "GCE n1-standard-32 8xK80": "n1-standard-32-8xK80",
    "EC2 p2.8xlarge 8xK80": "p2.8xlarge",
    "EC2 p2.8xlarge distributed (8 K80/host)": "p2.8xlarge",
}
"""platform of a row -> host of the catalog"""

_NAMED: Mapping[str, ParameterPlace] = {
    "parameter_server(cpu)": HOST,
    "parameter_server(gpu)": GPUS,
    "replicated": REPLICAS,
    "replicated(nccl)": REPLICAS,
    "distributed_replicated": HOSTS,
}
_RESNETS = ("ResNet-50", "ResNet-152")
_RECALLED: Mapping[str, Mapping[str, ParameterPlace]] = {
    "DGX-1 P100": {"InceptionV3": HOST, **dict.fromkeys(_RESNETS, HOST), "AlexNet": REPLICAS, "VGG16": REPLICAS},
    "GCE n1-standard-32 8xK80": dict.fromkeys(NETWORKS, HOST),
    "EC2 p2.8xlarge 8xK80": {"InceptionV3": HOST, **dict.fromkeys(_RESNETS, REPLICAS), "AlexNet": GPUS, "VGG16": GPUS},
    "EC2 p2.8xlarge distributed (8 K80/host)": dict.fromkeys(NETWORKS, HOSTS),
}
_NOT_SAID = ("see source", "as above")


def place_of_parameters(platform: str, variable_update: str, network: str) -> ParameterPlace | None:
    """Where the parameters of a row were; None for a text that nobody knows."""
    if variable_update in _NOT_SAID:
        return _RECALLED.get(platform, {}).get(network)
    return _NAMED.get(variable_update)
