"""Curves of the benchmark page: what their texts mean, and which is like which."""

from __future__ import annotations

import pytest

from partita.devices.catalog.hosts import host_model
from partita.scenarios.scaling.curves import ScalingCurve, nearest_curve
from partita.scenarios.scaling.machines import MACHINES

DGX, GCE, EC2, MANY = MACHINES


def test_machines_are_in_the_catalog() -> None:
    """Every platform of the page is a host with eight GPUs."""
    assert {host_model(name).gpus for name in MACHINES.values()} == {8}


@pytest.mark.parametrize(
    ("platform", "update", "model", "place"),
    [
        (DGX, "parameter_server(cpu)", "ResNet-50", "host"),
        (DGX, "replicated(nccl)", "VGG16", "replicas"),
        (DGX, "as above", "AlexNet", "replicas"),
        (DGX, "as above", "InceptionV3", "host"),
        (GCE, "see source", "VGG16", "host"),
        (EC2, "see source", "VGG16", "gpus"),
        (EC2, "see source", "ResNet-152", "replicas"),
        (EC2, "see source", "InceptionV3", "host"),
        (MANY, "distributed_replicated", "InceptionV3", "hosts"),
    ],
)
def test_where_parameters_are(platform: str, update: str, model: str, place: str) -> None:
    """As a row says, or as the page's settings are recalled."""
    setting = ScalingCurve(platform, update, "synthetic", model, 32).setting()
    assert setting is not None
    assert setting.parameters == place


def test_what_nobody_knows() -> None:
    """Another platform, network or update has no setting; one host has eight GPUs."""
    known = ScalingCurve(DGX, "as above", "real", "ResNet-50", 64)
    assert known._replace(platform="laptop").setting() is None
    assert known._replace(model="LeNet").setting() is None
    assert known._replace(variable_update="hand").setting() is None
    assert [known.has(n) for n in (1, 8, 9)] == [True, True, False]
    assert known._replace(platform=MANY, variable_update="distributed_replicated").has(64)
    assert nearest_curve(known._replace(platform="laptop"), [known]) is None


def test_the_nearest_curve() -> None:
    """The network decides, then the machine, then the batch; another model of GPU is never like it."""
    curve = ScalingCurve(EC2, "see source", "synthetic", "VGG16", 32)
    others = [
        curve._replace(model="AlexNet"),
        curve._replace(platform=DGX, variable_update="replicated(nccl)"),
        curve._replace(platform=GCE),
        curve._replace(batch_per_gpu=64),
    ]
    order = []
    while (nearest := nearest_curve(curve, others)) is not None:
        order.append(others.pop(others.index(nearest)))
    assert [(it.platform, it.model, it.batch_per_gpu) for it in order] == [
        (EC2, "VGG16", 64),
        (GCE, "VGG16", 32),
        (EC2, "AlexNet", 32),
    ]
