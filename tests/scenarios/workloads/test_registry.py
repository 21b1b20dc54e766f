"""Workloads by name: their settings as texts, those that a program registers, and those of installed packages."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from partita.devices import Cluster, cut, simulate
from partita.errors import AlreadyExistsError, InvalidArgumentError, NotFoundError
from partita.graph import GraphDef, graph_def_to_graph
from partita.graph.builder import GraphBuilder
from partita.graph.graphdef.sources import parse_graph_def
from partita.scenarios import LlamaModel, Split, model_from_config
from partita.scenarios.commands.request import ends
from partita.scenarios.workloads import registry
from partita.scenarios.workloads.model_step import ModelStep
from partita.scenarios.workloads.names import SUMMARIES
from partita.scenarios.workloads.registry import Workload, find_workload, register_workload, workload_names
from tests.scenarios.models.families import published, written

LOCAL = "/job:localhost/replica:0/task:0/device:"
SMALL = {
    "mlp": {"layers": "3", "features": "8", "gpus": "2"},
    "cnn": {"gpus": "2"},
    "resnet50": {"images": "4", "side": "64", "micro_batches": "2", "gpus": "2"},
    "transformer": {
        "layers": "2",
        "width": "16",
        "heads": "4",
        "hidden": "32",
        "length": "8",
        "batch": "2",
        "gpus": "2",
    },
    "reduction": {"gpus": "4", "length": "10", "tree": "yes"},
    "training": {"gpus": "2", "rows": "8", "kind": "reference"},
    "image_training": {"network": "AlexNet", "images": "2", "gpus": "1"},
}
MODELS = {"gpt": "gpt2", "llama": "llama", "moe": "mixtral", "bert": "bert", "vit": "vit"}
"""of workloads that are families of models the case whose config.json they read"""
DLRM = {"dense_features": 4, "tables": [7, 9], "embedding": 2, "bottom": [2], "top": [3, 1]}


@pytest.fixture(autouse=True)
def _forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test registers is gone after it."""
    monkeypatch.setattr(registry, "_WORKLOADS", dict(registry._WORKLOADS))


def test_every_shipped_workload_is_checked() -> None:
    assert {*SMALL, *MODELS, "dlrm"} == {*SUMMARIES}


@pytest.mark.parametrize("name", SMALL)
def test_a_shipped_workload_can_be_simulated(name: str) -> None:
    """Its nodes are on as many GPUs as it was told, and its step takes time."""
    graph = graph_def_to_graph(parse_graph_def(find_workload(name).graph(SMALL[name])))
    gpus = {device for device in graph.device_names() if "GPU" in device}
    assert len(gpus) == int(SMALL[name]["gpus"])
    placeholders = [node for node in graph.op_nodes() if node.op == "Placeholder"]
    feeds = {node.name: tuple(size or 2 for size in node.attrs["shape"]) for node in placeholders}
    fetches, targets = ends(graph)
    parts = cut(graph, "cpu:1,gpu:4", feeds=list(feeds), fetches=fetches, targets=targets)
    assert simulate(parts, "cpu:1,gpu:4", feeds=feeds).makespan_ns > 0


@pytest.mark.parametrize(("name", "case"), MODELS.items())
def test_a_family_of_models_is_a_workload(name: str, case: str, tmp_path: Path) -> None:
    """Its settings are read from texts: a file, a split, a cluster; its step has a loss, and says what is left out."""
    file = written(tmp_path, published()[case].config)
    texts = {"config": str(file), "split": "tp=2,microbatches=2", "cluster": "cpu:1,gpu:2", "fused": "no"}
    step = find_workload(name).made({**texts, "sequence_length": "8"})
    assert isinstance(step, ModelStep)
    assert step.split == Split(tp=2, microbatches=2)
    assert {name for name in step.graph.device_names() if "GPU" in name} == {f"{LOCAL}GPU:{k}" for k in range(2)}
    assert len(step.fetches) == 1
    assert step.warnings == model_from_config(file).left_out
    assert find_workload(name).graph({**texts, "sequence_length": "8"})


def test_a_recommendation_model_is_a_workload(tmp_path: Path) -> None:
    """On two ranks of data; a sample has no length."""
    file = written(tmp_path, {"model_type": "dlrm", **DLRM})
    step = find_workload("dlrm").made({"config": str(file), "split": "dp=2,microbatch=4"})
    assert isinstance(step, ModelStep)
    assert step.feeds["dense"] == (4, 4)


def small(*, config: LlamaModel, split: Split, cluster: Cluster | None = None) -> GraphDef:
    """A family of another package."""
    b = GraphBuilder()
    b.constant([config.parameters, split.devices, len(list(cluster or ()))], name="sizes")
    return b.graph_def()


def test_a_family_of_another_package_reads_the_same_texts(tmp_path: Path) -> None:
    """By the types of its settings; errors of a file and of a split are theirs."""
    mine = Workload("mine", "", small)
    file = written(tmp_path, published()["llama"].config)
    graph = mine.graph({"config": str(file), "split": "dp=4", "cluster": "cpu:1,gpu:4"})
    (node,) = graph_def_to_graph(parse_graph_def(graph)).op_nodes()
    assert node.attrs["value"].tolist() == [8624, 4, 5]
    with pytest.raises(InvalidArgumentError, match="has no field 'ddp'"):
        mine.graph({"config": str(file), "split": "ddp=4"})
    written(tmp_path, published()["gpt2"].config)
    with pytest.raises(InvalidArgumentError, match="model_type='gpt2' is not of this family"):
        mine.graph({"config": str(file), "split": "dp=4"})


def test_defaults_make_a_graph_too() -> None:
    """Of one workload; the others take as long as their sizes say."""
    assert parse_graph_def(find_workload("reduction").graph({})).node


def flagged(*, count: int, share: float = 0.5, is_loud: bool = False, label: str = "x") -> GraphDef:
    """A constant."""
    b = GraphBuilder()
    b.constant([count, share, float(is_loud), float(len(label))], name="all")
    return b.graph_def()


def test_texts_become_settings() -> None:
    """By the types of the function."""
    mine = Workload("mine", "four numbers", flagged)
    graph = mine.graph({"count": "3", "share": "0.25", "is_loud": "yes", "label": "abc"})
    (node,) = graph_def_to_graph(parse_graph_def(graph)).op_nodes()
    assert node.attrs["value"].tolist() == [3, 0.25, 1, 3]


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ({}, "setting 'count' has no default"),
        ({"count": "2", "counts": "3"}, "no setting 'counts'; did you mean 'count'"),
        ({"count": "2.5"}, "count='2.5' is no int"),
        ({"count": "2", "is_loud": "maybe"}, "is_loud='maybe' is no bool"),
        ({"count": "2", "share": "half"}, "share='half' is no float"),
    ],
)
def test_a_text_that_does_not_fit_is_named(texts: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        Workload("mine", "", flagged).graph(texts)


def test_a_setting_of_another_type_is_refused() -> None:
    def odd(sizes: list[int]) -> GraphDef:
        raise NotImplementedError(sizes)

    with pytest.raises(InvalidArgumentError, match=r"its setting sizes: .* is no keyword of type int"):
        Workload("odd", "", odd).settings()


@pytest.mark.parametrize(
    ("name", "texts", "message"),
    [
        ("transformer", {"heads": "5"}, "heads=5 does not divide width=768"),
        ("training", {"gpus": "3"}, "gpus=3 does not divide rows=256"),
        ("training", {"kind": "other"}, "kind='other'"),
        ("mlp", {"layers": "0"}, "layers is too small"),
        ("mlp", {"gpus": "-1"}, "gpus=-1"),
        ("image_training", {"network": "LeNet"}, "network='LeNet' is none of ResNet-50"),
        ("image_training", {"gpus": "2"}, "one replica"),
    ],
)
def test_sizes_that_make_no_graph_are_refused(name: str, texts: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        find_workload(name).graph(texts)


def test_a_name_is_taken_once() -> None:
    """An unknown name is told the nearest."""
    register_workload(Workload("mine", "four numbers", flagged))
    assert find_workload("mine").build is flagged
    with pytest.raises(AlreadyExistsError, match=r"'mine' \(four numbers\)"):
        register_workload(Workload("mine", "", flagged))
    with pytest.raises(NotFoundError, match="no workload 'mlpp'; did you mean 'mlp'"):
        find_workload("mlpp")


def test_one_of_an_installed_package(install: Callable[[str, str, str], Path]) -> None:
    """Its function is loaded when its name is asked for; a package that cannot be imported is named."""
    install(
        "acme_work",
        'from partita.graph.builder import GraphBuilder\n\n\ndef counted(count: int = 3):\n    """Some numbers."""\n'
        "    b = GraphBuilder()\n    b.constant([0.0] * count)\n    return b\n",
        "[partita.workloads]\ncounted = acme_work:counted\nlost = no_module:f\n",
    )
    assert workload_names()[-2:] == ["counted", "lost"]
    found = find_workload("counted")
    assert (found.summary, [str(setting) for setting in found.settings().values()]) == (
        "Some numbers.",
        ["count: int = 3"],
    )
    graph: Any = found.graph({"count": "2"})
    assert graph.graph_def().node[0].attr["value"].tensor.tensor_shape.dim[0].size == 2
    with pytest.raises(InvalidArgumentError, match="'lost', 'no_module:f', cannot be loaded"):
        find_workload("lost")
