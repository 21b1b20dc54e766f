"""Compares the closed form of planned steps with the simulated graph, for drawn models, splits and clusters.

    python tools/compare_planned_steps.py [--count 50] [--seed 0]

A line for each: the difference in percent, the model, the split, both times; then the median and the worst.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace
from random import Random
from statistics import median
from typing import Any, NamedTuple

from partita.devices import parse_cluster
from partita.errors import RequestError
from partita.scenarios import GptModel, LlamaModel, MoeModel, Split
from partita.scenarios.models.description import ModelDescription
from partita.scenarios.planners import estimate
from partita.scenarios.planners.simulated.step import simulated_step_ms
from partita.scenarios.planners.step import PlannedStep

MOST_CALLS = 64  # of layers by micro-batches on a rank: what is simulated in a few seconds


class DrawnStep(NamedTuple):
    """A model, how it is spread, over how many machines of which model, and the tokens of a sequence."""

    model: ModelDescription
    split: Split
    machine: str
    hosts: int
    tokens: int


def drawn(rng: Random) -> Iterator[DrawnStep]:
    """Steps that can be built."""
    while True:
        hosts, hidden = rng.choice([1, 1, 2, 4, 8]), rng.choice([4096, 5120, 8192])
        tp, cp, pp = rng.choice([1, 2, 4, 8]), rng.choice([1, 1, 1, 2, 4]), rng.choice([1, 1, 2, 4, 8])
        kind, interleave = rng.choice(["gpt", "llama", "moe"]), rng.choice([1, 1, 2]) if pp > 1 else 1
        layers = pp * interleave * rng.choice([1, 2, 4])
        microbatches = rng.choice([2, 4, 8]) if pp == 1 else pp * rng.choice([1, 2, 4])
        ranks = tp * cp * pp
        if 8 * hosts % ranks or layers < pp or layers * microbatches // pp > MOST_CALLS:
            continue
        settings: dict[str, Any] = {  # Any: of each field its own type
            "ep": rng.choice([1, 2, 4, 8]) if kind == "moe" else 1,
            "microbatch": rng.choice([1, 2, 4]),
            "zero": rng.choice([0, 1, 2, 3] if pp == 1 else [0, 1, 2]),
            "sequence_parallel": tp > 1 and rng.random() < 0.5,
            "recompute": rng.choice(["none", "selective", "full"]),
            "overlap": ("dp",) if rng.random() < 0.3 else (),
            "cp_kind": rng.choice(["heads", "ring"]),
        }
        step = DrawnStep(
            _model(kind, layers, hidden, rng), Split(), rng.choice(["DGX-A100", "DGX-H100", "DGX-B200"]), hosts, 4096
        )
        try:
            split = Split(
                tp=tp, cp=cp, pp=pp, dp=8 * hosts // ranks, microbatches=microbatches, interleave=interleave,
                precision="bfloat16", **settings,
            )  # fmt: skip
            split.check(step.model, step.tokens, 8 * hosts)
        except RequestError:
            continue
        yield step._replace(split=split)


def _model(kind: str, layers: int, hidden: int, rng: Random) -> ModelDescription:
    heads, wide = hidden // 128, int(3.5 * hidden)
    if kind == "gpt":
        return GptModel(layers=layers, hidden=hidden, heads=heads, positions=4096, tied=rng.random() < 0.5)
    llama = LlamaModel(layers, hidden, heads, kv_heads=8, intermediate=wide, vocabulary=rng.choice([32000, 128256]))
    if kind == "llama":
        return llama
    return MoeModel(
        layers, hidden, heads, kv_heads=8, intermediate=wide, vocabulary=32000, experts=8, topk=2,
        expert_intermediate=rng.choice([hidden // 2, wide]),
    )  # fmt: skip


def main() -> None:
    """Draws and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    differences, steps = [], drawn(Random(arguments.seed))
    for _ in range(arguments.count):
        step = next(steps)
        cluster = parse_cluster(f'[[host]]\nmodel = "{step.machine}"\njob = "worker"\ntasks = {step.hosts}')
        closed = estimate(step.model, step.split, cluster, sequence_length=step.tokens).step_ms
        try:
            simulated = simulated_step_ms(PlannedStep(step.model, step.tokens), step.split, cluster)
        except RequestError as error:
            print(f"not simulated: {type(step.model).__name__} {_shown(step.split)}: {error}")
            continue
        differences.append(abs(closed / simulated - 1))
        print(
            f"{100 * (closed / simulated - 1):+6.1f} %  {closed:8.1f} {simulated:8.1f} ms  "
            f"{type(step.model).__name__} {step.machine} {_shown(step.split)}",
            flush=True,
        )
    print(f"median {100 * median(differences):.1f} %, worst {100 * max(differences):.1f} %, of {len(differences)}")


def _shown(split: Split) -> dict[str, object]:
    """The fields of a split that are not as a split has them unless told."""
    usual = replace(Split(), precision="bfloat16", schedule=split.schedule)
    return {name: value for name in split.__slots__ if (value := getattr(split, name)) != getattr(usual, name)}


if __name__ == "__main__":
    main()
