"""A recommender: its losses and gradients as by plain formulas, wherever its tables are."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
import pytest

from partita.actors import BlockingSession
from partita.devices import cut, simulate
from partita.graph.builder.builder import GraphBuilder
from partita.graph.dtypes import Array
from partita.graph.gradients.backward import gradients
from partita.graph.parallel.mesh.mesh import Mesh
from partita.graph.parallel.mesh.rank_program import RankProgram
from partita.graph.parallel.mesh.write_out import prefix_of, write_out
from partita.scenarios.models.dlrm import DlrmModel
from partita.scenarios.models.split import Split
from partita.scenarios.workloads.model_building import build_model
from partita.scenarios.workloads.transformers.embedding_tables import shared_out
from partita.scenarios.workloads.transformers.forward import forward
from partita.scenarios.workloads.transformers.network import RankNetwork, RankSizes
from partita.scenarios.workloads.transformers.parameters import RankParameters

MODEL = DlrmModel(dense_features=5, tables=(10, 3, 7, 4, 9), embedding=4, bottom=(6, 4), top=(7, 5, 1))
SAMPLES = 12


class Found(NamedTuple):
    """Of all ranks: the sum of losses and the samples that count, logits, weights, and gradients by weight or table."""

    loss: float
    labelled: float
    logits: Array
    weights: dict[str, Array]
    gradients: dict[str, Array]


def batch() -> dict[str, Array]:
    """Samples; one has no label."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, SAMPLES, np.int32)
    labels[3] = -1
    indices = np.stack([rng.integers(0, rows, SAMPLES, np.int32) for rows in MODEL.tables], 1)
    return {
        "dense": rng.standard_normal((SAMPLES, MODEL.dense_features)).astype(np.float32),
        "indices": indices,
        "labels": labels,
    }


@cache
def over_ranks(ranks: int) -> Found:
    """The forward and backward pass over ranks of dp, in float64."""
    mesh, devices = Mesh(dp=ranks), [f"/device:CPU:{k}" for k in range(ranks)]
    b = GraphBuilder()
    parameters = RankParameters(RankProgram(b, mesh), "float64")
    sizes = RankSizes(1, SAMPLES // ranks, 1, (devices[0],))
    end = forward(RankNetwork(parameters.program, parameters, Split(dp=ranks), sizes), MODEL)
    losses = end.losses()
    reads = [weight.read for weight in parameters.all]
    slopes = gradients(b, [losses.total], reads)
    fetches = [losses.total.name, losses.labelled.name, end.logits().name, *map(str, slopes), *(r.name for r in reads)]
    copies = [prefix_of(rank) for rank in range(ranks)]
    graph = write_out(b.graph(), mesh, devices)
    fed = {
        f"{copy}{name}": part
        for name, values in batch().items()
        for copy, part in zip(copies, np.split(values, ranks), strict=True)
    }
    with BlockingSession(graph, f"cpu:{ranks}") as session:
        session.run([], targets=[f"{copy}{node.name}" for copy in copies for _, node in parameters.assignments])
        flat = session.run([f"{copy}{name}" for copy in copies for name in fetches], fed)
    by_rank = [flat[k * len(fetches) : (k + 1) * len(fetches)] for k in range(ranks)]
    loss, labelled, logits = (list(column) for column in zip(*[values[:3] for values in by_rank], strict=True))
    found = Found(sum(loss), sum(labelled), np.concatenate(logits), {}, {})
    for k, weight in enumerate(parameters.all):
        slope, value = ([values[3 + k + part * len(reads)] for values in by_rank] for part in (0, 1))
        if weight.name == "embedding/tables":
            found.gradients.update(by_table(slope))
            found.weights.update(by_table(value))
        else:
            found.gradients[weight.name] = np.sum(slope, axis=0)
            found.weights[weight.name] = value[0]
    return found


def by_table(parts: Sequence[Array]) -> dict[str, Array]:
    """The rows of each table, of the variables of all ranks."""
    layout = shared_out(MODEL.tables, len(parts))
    firsts = layout.first_rows(MODEL.tables)
    tables = {}
    for table, place in enumerate(layout.places.tolist()):
        rank, slot = divmod(place, layout.slots)
        tables[f"table_{table}"] = parts[rank][firsts[rank, slot] :][: MODEL.tables[table]]
    return tables


def expected_logits(weights: dict[str, Array]) -> Array:
    """By the definition of the model."""

    def layers(x: Array, scope: str, count: int, last: bool) -> Array:
        for k in range(count):
            x = x @ weights[f"{scope}/dense_{k}/weights"] + weights[f"{scope}/dense_{k}/bias"]
            x = np.maximum(x, 0) if k < count - 1 or last else x
        return x

    given = batch()
    x = layers(given["dense"].astype(float), "layer_0/bottom", 2, True)
    vectors = [x, *(weights[f"table_{t}"][given["indices"][:, t]] for t in range(len(MODEL.tables)))]
    pairs = [(vectors[i] * vectors[j]).sum(1) for i in range(len(vectors)) for j in range(i)]
    return layers(np.concatenate([x, np.stack(pairs, 1)], 1), "head", 3, False)


def test_logits_and_loss_are_those_of_the_formula() -> None:
    """The binary cross entropy of samples that have a label."""
    found = over_ranks(1)
    logits = expected_logits(found.weights)
    np.testing.assert_allclose(found.logits, logits, rtol=1e-12)
    labels, chance = batch()["labels"], 1 / (1 + np.exp(-logits[:, 0]))
    entropies = -np.where(labels == 1, np.log(chance), np.log(1 - chance))
    assert found.labelled == SAMPLES - 1
    assert found.loss == pytest.approx(entropies[labels >= 0].sum(), rel=1e-12)


@pytest.mark.parametrize("ranks", [2, 3, 4, 6])
def test_ranks_have_the_losses_and_gradients_of_one(ranks: int) -> None:
    """Each has whole tables; with six ranks one has none."""
    found, one = over_ranks(ranks), over_ranks(1)
    assert found.loss == pytest.approx(one.loss, rel=1e-12)
    assert found.labelled == one.labelled
    np.testing.assert_allclose(found.logits, one.logits, rtol=1e-12)
    for name, slope in one.gradients.items():
        np.testing.assert_allclose(found.gradients[name], slope, rtol=1e-10, atol=1e-13, err_msg=name)
        np.testing.assert_array_equal(found.weights[name], one.weights[name], err_msg=name)


def test_micro_batches_of_samples_add_up() -> None:
    """Three of four samples have the losses of one of twelve."""
    losses = []
    for split in (Split(microbatch=12), Split(microbatch=4, microbatches=3)):
        step = build_model(MODEL, split, "cpu:1")
        with BlockingSession(step.graph, "cpu:1") as session:
            session.run([], targets=step.initialise)
            losses.append([session.run(step.fetches, step.feed(**batch()), targets=step.targets)[0] for _ in range(3)])
    np.testing.assert_allclose(losses[1], losses[0], rtol=1e-6)
    assert losses[0][2] < losses[0][0]


def test_one_rank_stands_for_all_on_the_clock() -> None:
    """On six GPUs, one of which has no table, a step takes as long as with all ranks written out."""
    times = []
    for representatives in (False, True):
        step = build_model(MODEL, Split(dp=6, microbatch=2), "gpu:6", representatives=representatives)
        parts = cut(step.graph, "gpu:6", feeds=list(step.feeds), fetches=step.fetches, targets=step.targets)
        times.append(simulate(parts, "gpu:6").makespan_ns)
    assert times[0] == times[1] > 0
