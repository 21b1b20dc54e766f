"""The cross entropy over parts of the classes is that of all, and what only pads never wins."""

from __future__ import annotations

import numpy as np
import pytest

from partita.actors import BlockingSession
from partita.graph.builder.builder import GraphBuilder
from partita.graph.dtypes import Array
from partita.graph.gradients.backward import gradients
from partita.graph.parallel.mesh.mesh import Mesh
from partita.graph.parallel.mesh.rank_program import RankProgram
from partita.graph.parallel.mesh.write_out import prefix_of, write_out
from partita.scenarios.models.split import Split
from partita.scenarios.workloads.transformers.loss import ClassLogits, token_losses
from partita.scenarios.workloads.transformers.network import RankNetwork, RankSizes
from partita.scenarios.workloads.transformers.parameters import RankParameters

ROWS, CLASSES = 5, 7


def by_definition(logits: Array, labels: Array) -> tuple[float, Array]:
    """The sum of -log softmax at labels that are not negative, and its gradient."""
    shares = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    has_label = labels >= 0
    rows = np.flatnonzero(has_label)
    slopes = shares * has_label[:, None]
    slopes[rows, labels[rows]] -= 1
    return -float(np.log(shares[rows, labels[rows]]).sum()), slopes


@pytest.mark.parametrize("fused", [False, True], ids=["spelled", "fused"])
@pytest.mark.parametrize(("tp", "padded"), [(1, 7), (1, 12), (2, 8), (3, 24)])
def test_losses_and_slopes_by_definition(tp: int, padded: int, fused: bool) -> None:
    """On one rank and on several, of which the last may have nothing but padding; labels below 0 do not count."""
    rng = np.random.default_rng(tp)
    logits = rng.normal(0, 3, (ROWS, CLASSES))
    labels = np.array([6, -1, 0, 3, -100], np.int32)
    whole = np.concatenate([logits, rng.normal(50, 3, (ROWS, padded - CLASSES))], 1)
    devices = [f"/device:CPU:{k}" for k in range(tp)]
    b = GraphBuilder()
    program = RankProgram(b, Mesh(tp=tp))
    network = RankNetwork(
        program, RankParameters(program, "float64"), Split(tp=tp), RankSizes(1, 1, ROWS, (devices[0],), fused)
    )
    with network.last("loss"):
        values = b.placeholder("logits", "float64", (ROWS, padded // tp))
        losses = token_losses(network, ClassLogits(values, CLASSES, padded), b.placeholder("labels", "int32", (ROWS,)))
    (slope,) = gradients(b, [losses.total], [values])
    fetches = [losses.total.name, losses.labelled.name, str(slope)]
    feeds: dict[str, Array] = {}
    for rank, part in enumerate(np.split(whole, tp, 1)):
        feeds |= {f"{prefix_of(rank)}loss/logits": part, f"{prefix_of(rank)}loss/labels": labels}
    with BlockingSession(write_out(b.graph(), Mesh(tp=tp), devices), f"cpu:{tp}") as session:
        found = session.run([f"{prefix_of(rank)}{name}" for rank in range(tp) for name in fetches], feeds)
    expected, slopes = by_definition(logits, labels)
    for rank in range(tp):
        np.testing.assert_allclose(found[3 * rank : 3 * rank + 2], [expected, 3], rtol=1e-12)
    joined = np.concatenate(found[2::3], 1)
    np.testing.assert_allclose(joined[:, :CLASSES], slopes, rtol=1e-11, atol=1e-14)
    assert not joined[:, CLASSES:].any()
