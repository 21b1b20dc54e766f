"""Story: data-parallel training with the parameters on the host, with reference and with resource variables.

Every replica computes the gradients of its share of a batch on its own GPU; the host adds them and updates the
parameters, which are sent to the GPUs again in the next step. The losses do not depend on the kind of variables or the
number of replicas. The batch is so small that more replicas do not help: adding and updating on the host limit the
step. Run it with `python -m partita.scenarios.stories.data_parallel_training`.
"""

from __future__ import annotations

import numpy as np

from ...actors import BlockingSession
from ...devices import Cluster, cut, local_cluster
from ...devices.timing import Timeline, simulate
from ...devices.units import format_ns
from ...graph import Graph, GraphDef
from ..report import columns, step_report
from ..workloads.parameters import uniform
from ..workloads.training import CLASSES, FEATURES, VariableKind, training_step
from .catalog import Story

ROWS, STEPS = 256, 6
COUNTS = (1, 2, 4)


def story() -> Story:
    """The lines of the story."""
    yield f"a perceptron learns {ROWS} rows: its loss, step by step"
    yield from columns(
        [
            ("variables", "replicas", *(f"step {k + 1}" for k in range(STEPS))),
            *((kind, str(n), *losses(kind, n)) for kind in ("reference", "resource") for n in COUNTS),
        ]
    )
    yield "a step of two replicas"
    parts, timeline = _step(2)
    yield from step_report(parts, timeline, _cluster(2))
    yield "more replicas for the same batch"
    times = [(str(n), format_ns(_step(n)[1].makespan_ns)) for n in COUNTS]
    yield from columns([("GPUs", "step time"), *times])
    return timeline


def losses(kind: VariableKind, replicas: int) -> list[str]:
    """The loss of each step, in one session, as variables keep their values only within a session."""
    x = uniform("x", (ROWS, FEATURES))
    labels = (x[:, :CLASSES] + 0.1).argmax(1).astype(np.int32)
    with BlockingSession(_graph(kind, replicas), _cluster(replicas)) as session:
        session.run([], targets="initialise")
        values = [session.run("loss", {"x": x, "labels": labels}, targets="train")[0] for _ in range(STEPS)]
    return [f"{float(loss):.3f}" for loss in values]


def _graph(kind: VariableKind, replicas: int) -> GraphDef:
    return training_step(kind, [f"/device:GPU:{k}" for k in range(replicas)], ROWS)


def _cluster(replicas: int) -> Cluster:
    return local_cluster(f"cpu:1,gpu:{replicas}")


def _step(replicas: int) -> tuple[dict[str, Graph], Timeline]:
    cluster, feeds = _cluster(replicas), {"x": (ROWS, FEATURES), "labels": (ROWS,)}
    parts = cut(_graph("resource", replicas), cluster, feeds=list(feeds), fetches=["loss"], targets=["train"])
    return parts, simulate(parts, cluster, feeds=feeds)


if __name__ == "__main__":
    print("\n".join(story()))
