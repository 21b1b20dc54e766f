"""Workloads compute what their names say: compared with numpy, with each other, and with published counts."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from partita.actors import BlockingSession
from partita.devices import cut, local_cluster, simulate
from partita.graph import graph_def_to_graph
from partita.graph.dtypes import Array
from partita.scenarios import (
    TransformerSizes,
    all_to_one,
    all_to_one_tree,
    cnn,
    mlp,
    resnet50,
    training_step,
    transformer_encoder,
)
from partita.scenarios.workloads import training
from partita.scenarios.workloads.cnn import SIDE
from partita.scenarios.workloads.image_training import image_training
from partita.scenarios.workloads.parameters import uniform

PUBLISHED_RESNET50_WEIGHTS = 25_557_032  # He et al.'s network as counted by torchvision's documentation of resnet50


def cpus(count: int) -> list[str]:
    return [f"/device:CPU:{k}" for k in range(count)]


def test_numbers_are_the_same_everywhere() -> None:
    """The first numbers of a name, as written here; all are in [-1, 1) and differ."""
    assert uniform("x", (3,)).tolist() == uniform("x", (3, 2)).reshape(-1)[:3].tolist()
    many = uniform("many", (100, 100))
    assert many.dtype.name == "float32"
    assert many.min() >= -1
    assert many.max() < 1
    assert abs(many.mean()) < 0.02
    assert len(np.unique(many)) > 9_900


@settings(max_examples=8)
@given(st.lists(st.integers(0, 2), min_size=3, max_size=3))
def test_a_perceptron_is_what_numpy_computes(where: list[int]) -> None:
    """On any devices."""
    sizes, x = (5, 7, 6, 3), uniform("rows", (4, 5))
    graph_def = mlp(sizes, [f"/device:CPU:{k}" for k in where])
    expected = x.astype(np.float64)
    for k in range(3):
        weights = uniform(f"layer{k + 1}/weights", sizes[k : k + 2]) * np.sqrt(3 / sizes[k])
        expected = expected @ weights
        expected = np.maximum(expected, 0) if k < 2 else expected
    with BlockingSession(graph_def, "cpu:3") as session:
        np.testing.assert_allclose(session.run("y", {"x": x})[0], expected, rtol=1e-4, atol=1e-5)


def test_a_cnn_gives_probabilities_and_the_same_on_any_devices() -> None:
    """Rows add up to one, and the bits are the same on one device and on three."""
    images = uniform("images", (2, SIDE, SIDE, 3))
    results = []
    for count in (1, 3):
        with BlockingSession(cnn(cpus(count)), f"cpu:{count}") as session:
            results += session.run("probabilities", {"images": images})
    np.testing.assert_allclose(results[0].sum(1), 1, rtol=1e-5)
    np.testing.assert_array_equal(results[0], results[1])


@pytest.mark.parametrize("count", [1, 2, 3, 5, 8])
def test_both_reductions_add_the_same(count: int) -> None:
    """The sum of the first squares, for odd numbers of devices too."""
    expected = np.full(6, count * (count + 1) * (2 * count + 1) / 6, np.float32)
    for build in (all_to_one, all_to_one_tree):
        with BlockingSession(build(cpus(count), 6), f"cpu:{count}") as session:
            np.testing.assert_array_equal(session.run("total")[0], expected)


def test_the_first_training_step_is_gradient_descent() -> None:
    """Loss and updated weights of one step, against the formulas in double precision."""
    rows = 8
    x, labels = uniform("x", (rows, training.FEATURES)), np.arange(rows, dtype=np.int32)
    with BlockingSession(training_step("resource", cpus(2), rows), "cpu:2") as session:
        session.run([], targets="initialise")
        before = session.run(["w1/read", "b1/read", "w2/read", "b2/read"])
        (loss,) = session.run("loss", {"x": x, "labels": labels}, targets="train")
        after = session.run(["w1/read", "b1/read", "w2/read", "b2/read"])
    expected_loss, gradients = by_hand(x, labels, before)
    np.testing.assert_allclose(loss, expected_loss, rtol=1e-5)
    for old, new, gradient in zip(before, after, gradients, strict=True):
        np.testing.assert_allclose(new, old - training.LEARNING_RATE * gradient, rtol=1e-4, atol=1e-6)


def by_hand(x: Array, labels: Array, values: list[Array]) -> tuple[float, list[Array]]:
    """Mean loss and its gradients."""
    w1, b1, w2, b2 = (value.astype(np.float64) for value in values)
    rows = np.arange(len(labels))
    hidden = np.maximum(x @ w1 + b1, 0)
    logits = hidden @ w2 + b2
    p = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    loss = -np.log(p[rows, labels]).mean()
    p[rows, labels] -= 1
    d_logits = p / len(labels)
    d_hidden = (d_logits @ w2.T) * (hidden > 0)
    return loss, [x.T @ d_hidden, d_hidden.sum(0), hidden.T @ d_logits, d_logits.sum(0)]


def test_resnet50_has_the_published_number_of_weights() -> None:
    """53 convolutions per micro-batch, and every trained number; running means and variances are not trained."""
    graph = graph_def_to_graph(resnet50(cpus(3), 32, 2, 2))
    nodes = list(graph.op_nodes())
    assert sum(node.op == "Conv2D" for node in nodes) == 2 * 53
    trained = [n for n in nodes if n.op == "VarHandleOp" and not n.name.endswith(("/mean", "/variance"))]
    assert sum(prod(node.attr("shape")) for node in trained) == PUBLISHED_RESNET50_WEIGHTS


@pytest.mark.parametrize(
    ("name", "weights", "convolutions", "billion_products"),
    [
        ("ResNet-50", PUBLISHED_RESNET50_WEIGHTS, 53, 3.86),  # He et al. 2015, table 1: 3.8e9
        ("ResNet-152", 60_192_808, 155, 11.28),  # He et al. 2015, table 1: 11.3e9; torchvision's resnet152
        ("InceptionV3", 23_834_568, 94, 5.71),  # torchvision's inception_v3, without its auxiliary classifier
        ("VGG16", 138_357_544, 13, 15.47),  # torchvision's vgg16
        ("AlexNet", 61_100_840, 5, 0.714),  # torchvision's alexnet
    ],
)
def test_image_networks_have_the_published_sizes(
    name: str, weights: int, convolutions: int, billion_products: float
) -> None:
    """Weights, multiplications of an image, and an update for every variable."""
    step = image_training(name, 2, "/device:CPU:0")
    variables = [node for node in step.graph.op_nodes() if node.op == "VarHandleOp" and node.name != "images"]
    assert sum(prod(node.attr("shape")) for node in variables) == weights
    assert len(step.targets) == len(variables)
    cluster = local_cluster("cpu")
    forward = simulate(cut(step.graph, cluster, feeds=step.feeds, fetches=step.fetches), cluster)
    products = {total.op: total for total in forward.totals_by_op() if total.op in ("Conv2D", "MatMul")}
    assert products["Conv2D"].runs == convolutions
    flops = sum(total.flops for total in products.values())
    assert flops == pytest.approx(2 * 2e9 * billion_products, rel=5e-3)


def test_an_image_network_can_keep_its_variables_on_the_host() -> None:
    """Then each variable is copied to the GPU, and each gradient back."""
    cluster = local_cluster("cpu,gpu")
    copied = []
    for where in ("/device:GPU:0", "/device:CPU:0"):
        step = image_training("AlexNet", 2, "/device:GPU:0", where)
        parts = cut(step.graph, cluster, feeds=step.feeds, fetches=step.fetches, targets=step.targets)
        copied.append(simulate(parts, cluster).transferred_bytes)
    assert copied[1] - copied[0] == 2 * 61_100_840 * 4


def test_a_transformer_normalises_its_rows() -> None:
    """Every row of the output has mean 0 and deviation 1, over any number of devices."""
    sizes = TransformerSizes(batch=2, length=3, width=8, heads=4, hidden=8, layers=1)
    for count in (1, 2, 4):
        with BlockingSession(transformer_encoder(cpus(count), sizes), f"cpu:{count}") as session:
            session.run([], targets="initialise")
            (rows,) = session.run("encoded", {"tokens": uniform("tokens", (6, 8))})
        np.testing.assert_allclose(rows.mean(1), 0, atol=1e-5)
        np.testing.assert_allclose(rows.std(1), 1, atol=1e-3)
