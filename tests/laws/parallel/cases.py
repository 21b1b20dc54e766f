"""Draws training steps and the passes that make them parallel, for law 8.

case = drawn(17)        the same case each time; its repr says all
case.model()            the training step of one device
case.rewritten(graph)   recompute, then pipeline, then replicate, as far as the case has them
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from random import Random
from typing import Any

from partita.graph import Graph, pipeline, recompute, replicate
from tests.graph.parallel import pipelined_models  # noqa: F401  (adds the model "tower")
from tests.graph.parallel.training_models import MODELS, OPTIMIZERS, TrainingModel

SCOPES = {
    "perceptron": ("hidden",),
    "cnn": ("conv",),
    "transformer": ("attention", "inner"),
    "tower": ("first", "second", "third"),
}
ROWS = 24  # at most: more only take time


@dataclass(frozen=True)
class ModelCase:
    """The arguments of a `TrainingModel`; with `is_sized` it is made for the batch that it is fed."""

    model: str = "perceptron"
    optimizer: str = "sgd"
    dtype: str = "float64"
    kind: str = "resource"
    clips: bool = False
    decays: bool = False
    scales: bool = False
    averages: bool = False
    reduction: str = "mean"
    is_sized: bool = False


@dataclass(frozen=True)
class RecomputeCase:
    """The arguments of `recompute`."""

    policy: Any = "full"
    segments: Any = None


@dataclass(frozen=True)
class PipelineCase:
    """The arguments of `pipeline`, with a number of devices."""

    stages: int = 2
    schedule: str = "1f1b"
    microbatches: int = 2
    interleave: int = 1


@dataclass(frozen=True)
class ReplicaCase:
    """The arguments of `replicate`, with a number of replicas, and whether there is a parameter server."""

    count: int = 2
    feeds: str = "whole"
    zero: int = 0
    zero_group: int | None = None
    units: Any = None
    prefetch: int = 1
    bucket_bytes: int = 1 << 20
    is_served: bool = False


@dataclass(frozen=True)
class ParallelCase:
    """A training step, the rows of its batch, and the passes over it; `is_virtual` runs it in a virtual session."""

    step: ModelCase = ModelCase()
    rows: int = 8
    recomputed: RecomputeCase | None = None
    pipelined: PipelineCase | None = None
    replicated: ReplicaCase | None = None
    is_virtual: bool = False

    def model(self) -> TrainingModel:
        """A step that is not built yet."""
        settings = asdict(self.step)
        return TrainingModel(**settings, rows=self.rows) if settings.pop("is_sized") else TrainingModel(**settings)

    @property
    def divisor(self) -> int:
        """What the number of rows divides by."""
        return (self.pipelined.microbatches if self.pipelined else 1) * (
            self.replicated.count if self.replicated else 1
        )

    @property
    def stages(self) -> int:
        """Devices of a replica."""
        return self.pipelined.stages if self.pipelined else 1

    @property
    def parts(self) -> int:
        """How many placeholders take the batch."""
        return self.replicated.count if self.replicated and self.replicated.feeds == "per_replica" else 1

    @property
    def devices(self) -> list[str]:
        """The devices, stage by stage and replica by replica."""
        count = self.stages * (self.replicated.count if self.replicated else 1)
        return [f"{'gpu' if self.is_virtual else 'cpu'}:{number}" for number in range(count)]

    @property
    def cluster(self) -> str:
        """Those devices, and a CPU for variables that are served."""
        count = len(self.devices)
        return f"cpu:1,gpu:{count}" if self.is_virtual else f"cpu:{count + 1}"

    def rewritten(self, graph: Graph) -> Graph:
        """The graph after the passes."""
        if self.recomputed:
            graph = recompute(graph, loss="loss", **asdict(self.recomputed))
        if self.pipelined:
            how = asdict(self.pipelined)
            stages = self.devices[: how.pop("stages")]
            reduction: Any = self.step.reduction
            graph = pipeline(graph, stages, batch=["x", "y"], loss="loss", reduction=reduction, **how)
        if self.replicated:
            graph = self._replicated(graph, self.replicated)
        return graph

    def _replicated(self, graph: Graph, case: ReplicaCase) -> Graph:
        how = asdict(case)
        devices, stages = self.devices, self.stages
        entries = [devices[first : first + stages] for first in range(0, how.pop("count") * stages, stages)]
        server = "cpu:0" if self.is_virtual else f"cpu:{len(devices)}"
        how["parameters"] = server if how.pop("is_served") else None
        reduction: Any = self.step.reduction
        return replicate(graph, entries, batch=["x", "y"], loss="loss", reduction=reduction, **how)


def drawn(seed: int) -> ParallelCase:
    """The case of a seed: any combination of passes; every tenth in a virtual session.

    GPUs have no kernel for every op of float64.
    """
    random = Random(seed)
    is_virtual = seed % 10 == 9
    step = _step(random, ["float32", "mixed"] if is_virtual else ["float64", "float64", "float32", "mixed"])
    recomputed = _recomputed(random, step.model) if random.random() < 0.4 else None
    pipelined = _pipelined(random, step.model) if random.random() < 0.5 else None
    is_alone = recomputed is None and pipelined is None
    replicated = _replicated(random, step.model) if is_alone or random.random() < 0.7 else None
    case = ParallelCase(step, 0, recomputed, pipelined, replicated, is_virtual)
    return replace(case, rows=case.divisor * random.randint(1, max(1, ROWS // case.divisor)))


def _step(random: Random, dtypes: list[str]) -> ModelCase:
    optimizer = random.choice(OPTIMIZERS)
    dtype = random.choice(dtypes)
    kind = "resource" if optimizer.startswith("keras") else random.choice(["resource", "resource", "reference"])
    return ModelCase(
        random.choice([*MODELS, "tower"]),
        optimizer,
        dtype,
        kind,
        clips=random.random() < 0.5,
        decays=random.random() < 0.5,
        scales=dtype == "mixed" or random.random() < 0.3,
        averages=kind == "resource" and random.random() < 0.3,
        reduction="mean" if dtype == "mixed" else random.choice(["mean", "mean", "sum"]),  # sums overflow float16
        is_sized=random.random() < 0.3,
    )


def _recomputed(random: Random, model: str) -> RecomputeCase:
    scopes = SCOPES[model]
    return RecomputeCase(random.choice(["full", "products"]), random.choice([None, 2, scopes[:1], scopes]))


def _pipelined(random: Random, model: str) -> PipelineCase:
    schedule = random.choice(["gpipe", "1f1b", "interleaved"])
    interleave = 2 if schedule == "interleaved" and model in ("transformer", "tower") else 1
    stages = random.choice([2, 3]) if interleave == 1 and model != "perceptron" else 2
    microbatches = stages * random.randint(1, 2) if schedule == "interleaved" else random.randint(1, 4)
    return PipelineCase(stages, schedule, microbatches, interleave)


def _replicated(random: Random, model: str) -> ReplicaCase:
    count = random.choice([2, 2, 3, 4])
    zero = random.choice([0, 0, 1, 2, 3])
    group = random.choice([None, None, *(size for size in range(1, count + 1) if count % size == 0)]) if zero else None
    return ReplicaCase(
        count,
        random.choice(["whole", "per_replica"]),
        zero,
        group,
        random.choice([None, list(SCOPES[model])]) if zero == 3 else None,
        random.choice([0, 1, 3]) if zero == 3 else 1,
        random.choice([1, 700, 1 << 20]),
        is_served=not zero and random.random() < 0.3,
    )
