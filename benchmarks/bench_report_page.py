"""The rows "report page/...": report pages in an installed Chromium without a window; skipped where there is none.

drawn         from the start of a visit until the first picture of the timeline stands; the median of several visits,
              each in a window of its own, which knows nothing of the others
zoom and pan  the slowest of 20: what the page does from the turn of the wheel to the last pixel of the next picture

"5,000 nodes" is a simulated training step; the others have drawn names and times, on 16 devices, on one, or on 2,000.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from statistics import median
from typing import Any

from partita.devices import cut, simulate
from partita.devices.timing import Timeline
from partita.scenarios import LlamaModel, Split, build_model, write_report

from . import chromium
from .bench import Bench, Sizes
from .busy import busy_cores
from .drawn_steps import drawn_step
from .fresh import fresh
from .rows import Case, Figure, Measured, Promise, Skipped, limit

_BUSY = ", busy cores"


def training_step(layers: int) -> Timeline:
    """A training step of a small Llama, split in two by tensor parallelism: about 700 nodes a layer."""
    model = LlamaModel(layers=layers, hidden=256, heads=8, kv_heads=4, intermediate=704, vocabulary=4096)
    step = build_model(model, Split(tp=2, microbatches=2, sequence_parallel=True), "gpu:2", sequence_length=256)
    return simulate(cut(step.graph, "gpu:2", targets=step.targets), "gpu:2")


_STEPS: dict[str, Callable[[Sizes], Timeline]] = {
    "5,000 nodes": lambda sizes: training_step(sizes.reported_layers),
    "200,000 events": lambda sizes: drawn_step(sizes.reported_events[0]),
    "200,000 on one device": lambda sizes: drawn_step(sizes.reported_events[0], devices=1),
    "200,000 on 2,000 devices": lambda sizes: drawn_step(sizes.reported_events[0], devices=2_000),
    "1,000,000 events": lambda sizes: drawn_step(sizes.reported_events[1]),
}
_DRAWN: dict[str, Promise] = {
    "5,000 nodes": limit(0.5, 0.3),
    "200,000 events": limit(1.5, 0.8),
    "1,000,000 events": limit(5),
}
_MOVES = limit(0.06, 0.016)


def _opened(bench: Bench, shown: str, surroundings: str) -> dict[str, Any]:  # Any: lists of seconds
    """What the browser said of the page, which two rows share."""
    if missing := chromium.missing():
        raise Skipped(missing)
    said = bench.pages.get(shown + surroundings)
    if said is None:
        page = bench.folder / f"{shown}.html"
        if not page.exists():
            write_report(_STEPS[shown](bench.sizes), page)
        with busy_cores() if surroundings else nullcontext():
            said = json.loads(fresh("benchmarks.drawn_page", str(page), str(bench.sizes.rounds)).output)
        bench.pages[shown + surroundings] = said
    return said


async def _drawn(bench: Bench, shown: str, surroundings: str = "") -> Measured:
    return Measured(Figure(median(_opened(bench, shown, surroundings)["drawn_s"])))


async def _moves(bench: Bench, shown: str, surroundings: str = "") -> Measured:
    return Measured(Figure(max(_opened(bench, shown, surroundings)["moves_s"])))


def _cases(shown: str, surroundings: str = "") -> list[Case]:
    drawn, moves = (partial(measure, shown=shown, surroundings=surroundings) for measure in (_drawn, _moves))
    return [
        Case(f"report page/{shown}, drawn{surroundings}", "", _DRAWN.get(shown), drawn),
        Case(f"report page/{shown}, zoom and pan{surroundings}", "", _MOVES, moves),
    ]


CASES = [*(case for shown in _STEPS for case in _cases(shown)), *_cases("200,000 events", _BUSY)]
