"""Story: a transformer encoder whose heads and hidden units are split over one to eight GPUs.

The arithmetic of a layer is divided by the number of GPUs, the traffic is not: the activations go from the first GPU to
all others and back, twice a layer. So beyond some number of GPUs more of them are slower; with faster links that number
is higher. Run it with `python -m partita.scenarios.stories.transformer_encoder`.
"""

from __future__ import annotations

from ...actors import BlockingSession
from ...devices import Cluster, cut, parse_cluster
from ...devices.timing import Timeline, simulate
from ...devices.units import format_ns
from ...graph import Graph
from ..report import columns, step_report, value_line
from ..workloads.parameters import uniform
from ..workloads.transformer import TransformerSizes, transformer_encoder
from .catalog import Story

SMALL = TransformerSizes(batch=2, length=16, width=64, heads=8, hidden=128, layers=2)
LARGE = TransformerSizes(batch=8, length=512, width=1024, heads=16, hidden=4096, layers=4)
COUNTS = (1, 2, 4, 8)
LINKS = ("NVLink3", "PCIe4 x16")


def story() -> Story:
    """The lines of the story."""
    tokens = uniform("tokens", (SMALL.batch * SMALL.length, SMALL.width))
    with BlockingSession(transformer_encoder(_gpus(4), SMALL), _cluster(4, LINKS[0])) as session:
        session.run([], targets="initialise")
        (encoded,) = session.run("encoded", {"tokens": tokens})
    yield "a small encoder over four GPUs"
    yield value_line("encoded", encoded)

    yield f"{LARGE.layers} layers of width {LARGE.width}, {LARGE.batch} x {LARGE.length} tokens: step time"
    times = ((str(n), *(format_ns(_step(n, link)[1].makespan_ns) for link in LINKS)) for n in COUNTS)
    yield from columns([("GPUs", *LINKS), *times])
    yield f"the step on four GPUs joined by {LINKS[0]}"
    parts, timeline = _step(4, LINKS[0])
    yield from step_report(parts, timeline, _cluster(4, LINKS[0]))
    return timeline


def _gpus(count: int) -> list[str]:
    return [f"/device:GPU:{k}" for k in range(count)]


def _cluster(count: int, link: str) -> Cluster:
    """One host with `count` GPUs joined by a link of the catalog, written as a cluster file."""
    return parse_cluster(
        f"""
        [[device]]
        spec = "A100-80GB"
        count = {count}

        [[link]]
        between = "gpus"
        link = "{link}"
        """
    )


def _step(count: int, link: str) -> tuple[dict[str, Graph], Timeline]:
    cluster = _cluster(count, link)
    parts = cut(transformer_encoder(_gpus(count), LARGE), cluster, feeds=["tokens"], targets=["encoded"])
    return parts, simulate(parts, cluster, feeds={"tokens": (LARGE.batch * LARGE.length, LARGE.width)})


if __name__ == "__main__":
    print("\n".join(story()))
