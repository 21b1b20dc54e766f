"""The kernels of a layer by rank and micro-batch, and their times before any fitted number of training.

    work = LayerWork(64)                                       of 64 kinds of rows
    work.product(m=rows, n=3 * hidden // tp, k=hidden)         forward, and both products backward
    work.attention(...); work.stream(forward_bytes, backward_bytes); work.exchange("tp", "all_reduce", size)
    times = layer_times([work, ...], machine, precision)       all products of all layers are asked for together

A size is a column, a value for each kind of row. Operations of products backward are those of the gradient of the
input and of the weights, each a product of its own shape.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from attrs import evolve

from ....devices.timing.costs.kernel_costs import kernel_answer
from ....devices.timing.costs.layer_costs import answer_of
from ....devices.timing.costs.product_costs import products_answer
from ....devices.timing.fits.attention import Attentions
from ....devices.timing.fits.grouped import GroupedProducts
from ....devices.timing.fits.kernels.low_bit import LowBitProducts
from ....devices.timing.fits.products import Products, bf16_peak
from ....errors import UnimplementedError
from ....graph.arrays import Floats, Numbers
from ...models.split import Precision
from ..keys import distinct_rows
from ..machine import Machine

FORWARD, BACKWARD, CORE, TAIL = "forward", "backward", "core", "tail"
"""the phases, and two parts of "forward" that are said once more by themselves: the attention core, and the end of a
layer, whose results no backward pass reads"""
PHASES = (FORWARD, BACKWARD, CORE, TAIL)
ITEM_BYTES: Mapping[Precision, float] = {"bfloat16": 2, "float16": 2, "fp8": 2, "float32": 4}
"""of an activation"""
LAYOUTS = ("TN", "NN", "NT")
STAGES = ("fwd", "bwd_grad_act", "bwd_grad_w")


class ProductRun(NamedTuple):
    """Products of (m, k) by (k, n), `batch` together; each occurs `runs` times in a phase."""

    phase: str
    category: str
    m: Numbers
    n: Numbers
    k: Numbers
    batch: Numbers
    layout: str
    runs: float
    also: str
    may_be_narrow: bool


class AttentionRun(NamedTuple):
    """Flash attention of a direction, by the columns of `Attentions`."""

    phase: str
    columns: Mapping[str, Numbers]
    runs: Floats


class GroupedRun(NamedTuple):
    """Grouped products of experts in a stage."""

    phase: str
    stage: str
    columns: Mapping[str, Numbers]


class LayerExchange(NamedTuple):
    """A collective along an axis: how often it runs in a phase, and the bytes as `collective_time` counts them."""

    phase: str
    axis: str
    kind: str
    size_bytes: Floats
    runs: Floats


class LayerWork:
    """What a rank does in one layer for a micro-batch; rows are kinds of configurations."""

    def __init__(self, rows: int) -> None:
        self.rows = rows
        self.products: list[ProductRun] = []
        self.attentions: list[AttentionRun] = []
        self.grouped_products: list[GroupedRun] = []
        self.exchanges: list[LayerExchange] = []
        self.bytes = {phase: np.zeros(rows) for phase in PHASES}
        self.kernels = {phase: np.zeros(rows) for phase in PHASES}
        self.streams = {phase: np.zeros(rows) for phase in PHASES}

    def product(
        self,
        m: Numbers | int,
        n: Numbers | int,
        k: Numbers | int,
        *,
        batch: Numbers | int = 1,
        category: str = "products",
        also: str = "",
        has_weights: bool = True,
    ) -> None:
        """A product forward, and the two of its gradients; `has_weights`: the second factor may be 8 bits wide.

        `also` "core" or "tail" says that the forward one is of that part.
        """
        m, n, k, batch = (self._column(size) for size in (m, n, k, batch))
        shapes = ((FORWARD, (m, n, k)), (BACKWARD, (m, k, n)), (BACKWARD, (n, k, m)))
        for (phase, shape), layout in zip(shapes, LAYOUTS, strict=True):
            self.products.append(ProductRun(phase, category, *shape, batch, layout, 1.0, also, has_weights))
        self.launch(1, 2, also=also)

    def attention(self, runs: Floats | float = 1.0, **columns: Numbers | int) -> None:
        """Flash attention in both directions; `runs` times, as blocks of a ring."""
        sizes = {name: self._column(size) for name, size in columns.items()}
        often = np.broadcast_to(np.asarray(runs, dtype=np.float64), self.rows)
        self.attentions += [AttentionRun(phase, sizes, often) for phase in (FORWARD, BACKWARD)]
        self.launch(often, 2 * often, also=CORE)

    def grouped(self, groups: Numbers, m: Numbers, n: Numbers | int, k: Numbers | int, gradient_bytes: int) -> None:
        """Products of `groups` experts with m rows each, forward and both backward."""
        sizes = {"groups": groups, "m": m, "n": n, "k": k, "gradient_bytes": gradient_bytes}
        columns = {name: self._column(size) for name, size in sizes.items()}
        swapped = {**columns, "n": columns["k"], "k": columns["n"]}
        for phase, stage, of in zip((FORWARD, BACKWARD, BACKWARD), STAGES, (columns, swapped, columns), strict=True):
            self.grouped_products.append(GroupedRun(phase, stage, of))
        self.launch(1, 2)

    def stream(
        self,
        forward_bytes: Floats | float,
        backward_bytes: Floats | float,
        kernels: tuple[Floats | float, Floats | float] = (1, 1),
        *,
        also: str = "",
    ) -> None:
        """Kernels that read and write so many bytes forward and backward."""
        self.bytes[FORWARD] += forward_bytes
        self.bytes[BACKWARD] += backward_bytes
        self.streams[FORWARD] += kernels[0]
        self.streams[BACKWARD] += kernels[1]
        if also:
            self.bytes[also] += forward_bytes
            self.streams[also] += kernels[0]
        self.launch(*kernels, also=also)

    def launch(self, forward: Floats | float, backward: Floats | float, *, also: str = "") -> None:
        """Kernels that are launched, beside what they do."""
        self.kernels[FORWARD] += forward
        self.kernels[BACKWARD] += backward
        if also:
            self.kernels[also] += forward

    def exchange(
        self,
        axis: str,
        kind: str,
        backward_kind: str,
        size_bytes: Floats,
        runs: Floats | float = 1.0,
        *,
        also: str = "",
    ) -> None:
        """A collective forward, and the one of its gradient."""
        often = np.broadcast_to(np.asarray(runs, dtype=np.float64), self.rows)
        sizes = np.broadcast_to(np.asarray(size_bytes, dtype=np.float64), self.rows)
        self.exchanges += [
            LayerExchange(FORWARD, axis, kind, sizes, often),
            LayerExchange(BACKWARD, axis, backward_kind, sizes, often),
        ]
        if also:
            self.exchanges.append(LayerExchange(also, axis, kind, sizes, often))

    def _column(self, size: Numbers | int) -> Numbers:
        return np.broadcast_to(np.asarray(size, dtype=np.int64), self.rows)


class LayerTimes(NamedTuple):
    """Columns by kind of row, of one layer and micro-batch: times of its kernels in ns, and bytes that stream.

    Each maps the phases and parts.
    """

    products_ns: Mapping[str, Floats]
    attention_ns: Mapping[str, Floats]
    bytes: Mapping[str, Floats]
    streams: Mapping[str, Floats]
    kernels: Mapping[str, Floats]
    exchanges: Sequence[LayerExchange]


def layer_times(works: Sequence[LayerWork], machine: Machine, precision: Precision) -> list[LayerTimes]:
    """The times of layers; each shape is asked for once. Errors as of the costs of products and attention."""
    if precision not in ITEM_BYTES:
        raise UnimplementedError(
            f"precision={precision!r} has no closed form; use {', '.join(ITEM_BYTES)}, or simulate the graph"
        )
    pairs = [tuple({phase: np.zeros(work.rows) for phase in PHASES} for _ in range(2)) for work in works]
    _add_products(works, pairs, machine, precision)
    _add_attention(works, pairs, machine)
    _add_grouped(works, pairs, machine)
    return [
        LayerTimes(products, attention, work.bytes, work.streams, work.kernels, work.exchanges)
        for work, (products, attention) in zip(works, pairs, strict=True)
    ]


_Pairs = Sequence[tuple[dict[str, Floats], ...]]


def _add_products(works: Sequence[LayerWork], pairs: _Pairs, machine: Machine, precision: Precision) -> None:
    """Adds the times of products to their phases."""
    runs = [(run, number) for number, work in enumerate(works) for run in work.products]
    if not runs:
        return
    is_narrow = [precision == "fp8" and run.may_be_narrow for run, _ in runs]
    columns = {name: np.concatenate([getattr(run, name) for run, _ in runs]) for name in ("m", "n", "k", "batch")} | {
        "layout": np.concatenate([np.full(len(run.m), LAYOUTS.index(run.layout)) for run, _ in runs]),
        "narrow": np.concatenate(
            [np.full(len(run.m), narrow) for (run, _), narrow in zip(runs, is_narrow, strict=True)]
        ),
    }
    kinds, number = distinct_rows(columns)
    every, at = _products_ns(kinds, machine, precision)[number], 0
    for run, of in runs:
        each = every[at : at + len(run.m)] * run.runs
        at += len(run.m)
        target = pairs[of][0] if run.category == "products" else pairs[of][1]
        target[run.phase] += each
        if run.also and run.phase == FORWARD:
            target[run.also] += each


def _products_ns(kinds: Mapping[str, Numbers], machine: Machine, precision: Precision) -> Floats:
    m, n, k, batch = (kinds[name] for name in ("m", "n", "k", "batch"))
    layouts = tuple(LAYOUTS[place] for place in kinds["layout"])
    asked = Products(m, n, k, batch, layouts)
    if precision == "float32":
        rates = machine.spec.peak_flops_per_s
        ratio = rates.get("tf32", rates["fp32"]) / bf16_peak(machine.spec)
        asked = evolve(asked, item_bytes=4, rate_ratio=ratio, is_transferred=True)
    said = products_answer(machine.spec, asked, machine.calibration)
    times = said.time_ns.copy()
    narrow = kinds["narrow"].astype(np.bool_)
    if narrow.any():
        rows = LowBitProducts({"dtype": ["fp8"] * int(narrow.sum())}, {"m": m[narrow], "n": n[narrow], "k": k[narrow]})
        times[narrow] = kernel_answer(machine.spec, rows, machine.calibration).said.time_ns * batch[narrow]
    return times


def _add_attention(works: Sequence[LayerWork], pairs: _Pairs, machine: Machine) -> None:
    runs = [(run, number) for number, work in enumerate(works) for run in work.attentions]
    for phase, direction in ((FORWARD, "fwd"), (BACKWARD, "bwd")):
        of_phase = [(run, number) for run, number in runs if run.phase == phase]
        if not of_phase:
            continue
        names = list(of_phase[0][0].columns)
        kinds, place = distinct_rows(
            {name: np.concatenate([run.columns[name] for run, _ in of_phase]) for name in names}
        )
        square = kinds.pop("square", None)
        asked = Attentions([direction] * len(next(iter(kinds.values()))), square, **kinds)
        answer = answer_of(machine.spec, "attention", asked, machine.calibration)
        every, at = answer.said.time_ns[place], 0
        for run, number in of_phase:
            each = every[at : at + len(run.runs)] * run.runs
            at += len(run.runs)
            pairs[number][1][phase] += each
            if phase == FORWARD:
                pairs[number][1][CORE] += each


def _add_grouped(works: Sequence[LayerWork], pairs: _Pairs, machine: Machine) -> None:
    runs = [(run, number) for number, work in enumerate(works) for run in work.grouped_products]
    if not runs:
        return
    names = list(runs[0][0].columns)
    columns = {name: np.concatenate([run.columns[name] for run, _ in runs]) for name in names}
    columns["stage"] = np.concatenate([np.full(len(run.columns["m"]), STAGES.index(run.stage)) for run, _ in runs])
    kinds, place = distinct_rows(columns)
    stages = [STAGES[stage] for stage in kinds.pop("stage")]
    said = answer_of(machine.spec, "grouped", GroupedProducts(stages, **kinds), machine.calibration).said
    every, at = said.time_ns[place], 0
    for run, number in runs:
        rows = len(run.columns["m"])
        pairs[number][0][run.phase] += every[at : at + rows]
        at += rows
