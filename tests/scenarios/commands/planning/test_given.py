"""Models and machines that flags name."""

from __future__ import annotations

from pathlib import Path

import pytest

from partita.devices import parse_cluster
from partita.errors import InvalidArgumentError
from partita.scenarios.cli import cli
from partita.scenarios.commands.failure import ConfigurationError
from partita.scenarios.commands.planning.flags import PlanFlags
from partita.scenarios.commands.planning.given import given_model
from partita.scenarios.commands.planning.machines import first_of, given_machines, machines_with
from partita.scenarios.models.gpt import GptModel
from partita.scenarios.models.llama import LlamaModel
from partita.scenarios.models.moe import MoeModel
from partita.scenarios.models.sizes import sizes_of
from partita.scenarios.planned_models import PLANNED, SIZES
from partita.scenarios.planners.machine import Machine

NOT_PLANNED = {"pad_vocabulary", "groups", "groups_kept"}
"""sizes that no plan depends on, so that no flag has them"""


def test_every_size_of_a_family_has_a_flag() -> None:
    """And every flag is a size of one."""
    sizes = {name for family in (GptModel, LlamaModel, MoeModel) for name in sizes_of(family)}
    assert set(SIZES) == sizes - NOT_PLANNED
    flags = {option for parameter in cli.commands["plan"].params for option in parameter.opts}
    assert {"--" + name.replace("_", "-") for name in SIZES} <= flags


def test_a_model_of_sizes() -> None:
    """Of each family; what is left out has its default."""
    small = {"layers": 2, "hidden": 64, "heads": 4}
    dense = {**small, "intermediate": 128, "vocabulary": 100}
    experts = {**dense, "experts": 8, "topk": 2, "expert_intermediate": 32}
    models = [
        given_model(PlanFlags(family, sizes=sizes))
        for family, sizes in zip(PLANNED, (small, dense, experts), strict=True)
    ]
    assert models == [
        GptModel(2, 64, 4),
        LlamaModel(2, 64, 4, 128, 100),
        MoeModel(2, 64, 4, 128, 100, experts=8, topk=2, expert_intermediate=32),
    ]


@pytest.mark.parametrize(
    ("family", "sizes", "words"),
    [
        ("gpt", {}, "add --config FILE, or --layers N --hidden N --heads N$"),
        ("moe", {"layers": 2}, "--expert-intermediate N$"),
        ("llama", {"experts": 8}, "--experts: a llama has no such size"),
        (
            "llama",
            {"layers": 2, "hidden": 63, "heads": 4, "intermediate": 9, "vocabulary": 9},
            "heads=4 does not divide",
        ),
    ],
)
def test_sizes_that_make_no_model(family: str, sizes: dict[str, int], words: str) -> None:
    """Say which flag to add or to leave out."""
    with pytest.raises(ConfigurationError, match=words):
        given_model(PlanFlags(family, sizes=sizes))


def test_machines_of_a_count() -> None:
    """Those of --gpus have as many GPUs as asked; without a count of their own the most of --gpu-counts."""
    flags = PlanFlags("gpt", gpus="H100-SXM", gpu_counts="8,32,16")
    assert len(given_machines(flags).ranked) == 32
    assert len(machines_with(flags, given_machines(flags), 16).ranked) == 16


RACK = """
[[host]]
model = "DGX-A100"
job = "worker"
tasks = 4

[[link]]
between = ["/job:worker/replica:0/task:3/device:GPU:0", "/job:worker/replica:0/task:3/device:GPU:1"]
link = "NVLink3"
"""


def test_the_first_devices_of_a_cluster() -> None:
    """With the machines that they are in, and without links of others."""
    rack = parse_cluster(RACK)
    half = Machine.of(first_of(rack, 16))
    assert (half.hosts, half.per_host, len(half.cluster)) == (2, 8, 18)
    assert half.port_bytes_per_s == Machine.of(rack).port_bytes_per_s
    part = Machine.of(first_of(rack, 4))
    assert (part.hosts, part.per_host, len(part.cluster)) == (1, 4, 5)
    assert first_of(rack, 32).names == rack.names
    with pytest.raises(InvalidArgumentError, match="the cluster has 32 GPUs"):
        first_of(rack, 33)


def test_a_file_that_is_none_is_named(tmp_path: Path) -> None:
    """With its flag."""
    with pytest.raises(ConfigurationError, match=r"--cluster: .*missing\.toml"):
        given_machines(PlanFlags("gpt", cluster=tmp_path / "missing.toml"))
