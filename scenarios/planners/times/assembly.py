"""Terms of steps and numbers become times: layers, stages, the pipeline, and what follows it.

    layer forward    products + attention + streaming + exposed exchanges, or its launches where they take longer
    stage            its layers forward and backward, once more forward where it is computed again, and the host's time
    step             m * slowest + (all stages - slowest) / interleave + transfers + gradients + optimizer

The last line is (m - 1) * slowest + all / interleave + (1 - 1 / interleave) * slowest for m micro-batches: with equal
stages (m + (pp - 1) / interleave) * stage (Narayanan et al. 2021, 2.2). GPipe takes as long as 1F1B.

The host launches kernels in a queue of its own, so of device and host the slower decides. Launches scatter, so near
where both meet a layer takes longer than either: a maximum of power `SHARPNESS`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from ....graph.arrays import Floats
from ..configurations import RECOMPUTATIONS
from ..estimates import TIME_CATEGORIES
from ..numbers import PlanNumbers
from .exchanges import ExchangeTimes
from .kernels import BACKWARD, CORE, FORWARD, PHASES, TAIL
from .overlaps import exposed_gradients, exposed_in_layer
from .terms import AXES, LayerTerms, StepTerms

SHARPNESS = 4.0
WITHIN = ("products", "attention", "memory_bound", *AXES)
"""the categories of a layer beside launches"""
FULL, SELECTIVE, PRODUCTS = (RECOMPUTATIONS.index(name) for name in ("full", "selective", "products"))
LAYERS_AGAIN = ("dense", "experts")
"""the kinds of layers that recomputation is of"""


class AssembledTimes(NamedTuple):
    """By row: the step, its parts by category (which add up to it), and all communication that is exposed; in ns."""

    step_ns: Floats
    by_category: Mapping[str, Floats]
    bubble_fraction: Floats
    exposed_ns: Floats


class LayerParts(NamedTuple):
    """A layer and micro-batch in one pass: by category the time of the device, and that of the host; in ns."""

    device_ns: Mapping[str, Floats]
    launches_ns: Floats

    @property
    def busy_ns(self) -> Floats:
        """The device's time."""
        return sum(self.device_ns.values(), np.zeros(len(self.launches_ns)))

    def waits_ns(self, sharpness: float) -> Floats:
        """How long the device waits for launches."""
        busy = self.busy_ns
        most = np.maximum(np.maximum(busy, self.launches_ns), 1.0)
        if np.isinf(sharpness):
            return np.asarray(most - busy)
        shares = (busy / most) ** sharpness + (self.launches_ns / most) ** sharpness
        return np.asarray(most * shares ** (1 / sharpness) - busy)


def assembled(terms: StepTerms, by: PlanNumbers, *, sharpness: float = SHARPNESS) -> AssembledTimes:
    """The times of each row; a `sharpness` of infinity is that of launches that all take the same time."""
    runs, stages = terms.runs, terms.stages
    passes = {kind: _passes(terms, layer, by, is_again=kind in LAYERS_AGAIN) for kind, layer in terms.layers.items()}
    of_ranks = {name: np.zeros(stages.ranks.shape) for name in (*WITHIN, "launches")}
    last_backward = np.zeros(stages.ranks.shape)
    for kind, (forward, backward) in passes.items():
        for name in WITHIN:
            of_ranks[name] += (forward.device_ns[name] + backward.device_ns[name])[:, None] * stages.layers[kind]
        waits_ns = forward.waits_ns(sharpness) + backward.waits_ns(sharpness)
        of_ranks["launches"] += waits_ns[:, None] * stages.layers[kind]
        last_backward += backward.busy_ns[:, None] * stages.layers[kind]
    host_ns = np.where(terms.trains, by.microbatch_ns, by.microbatch_ns / 2)
    of_ranks["launches"] += host_ns[:, None] * (stages.ranks > 0)
    totals = sum(of_ranks.values(), np.zeros(stages.ranks.shape))
    slowest = np.argmax(totals, axis=1)[:, None]

    def of_slowest(column: Floats) -> Floats:
        return np.asarray(np.take_along_axis(column, slowest, axis=1)[:, 0])

    categories = {name: of_slowest(column) * runs.microbatches for name, column in of_ranks.items()}
    every = (totals * stages.ranks).sum(axis=1)
    categories["bubble"] = (every - of_slowest(totals)) / runs.interleave
    categories["pp"] = _transfer_ns(terms, by)
    categories["dp"] = _gradients_ns(terms, by, of_slowest(last_backward))
    rate = terms.bandwidth_bytes_per_s * by.optimizer / 1e9
    categories["optimizer"] = terms.gradients.optimizer_bytes / rate
    categories["launches"] += by.step_ns
    step_ns = sum(categories.values(), np.zeros(len(runs.pp)))
    exposed = sum((categories[name] for name in (*AXES, "dp", "pp")), np.zeros(len(runs.pp)))
    in_order = {name: categories[name] for name in TIME_CATEGORIES}
    return AssembledTimes(step_ns, in_order, categories["bubble"] / step_ns, exposed)


def exchange_ns(of: ExchangeTimes, by: PlanNumbers) -> Floats:
    """The time of an exchange by what links reach."""
    return of.inside_ns * by.inside + of.fixed_ns + of.wire_ns / by.network


def _passes(terms: StepTerms, layer: LayerTerms, by: PlanNumbers, *, is_again: bool) -> tuple[LayerParts, LayerParts]:
    """The forward and the backward pass of a layer; what `is_again` has computed once more is in the latter."""
    rate = terms.bandwidth_bytes_per_s * by.memory / 1e9
    parts = {
        phase: {
            "products": layer.products_ns[phase] * by.products,
            "attention": layer.attention_ns[phase] * by.attention,
            "memory_bound": layer.bytes[phase] / rate + layer.streams[phase] * by.kernel_ns,
            **{axis: exchange_ns(layer.exchanges[axis, phase], by) for axis in AXES},
        }
        for phase in PHASES
    }
    launches = {phase: (layer.kernels[phase] + layer.launched[phase]) * by.launch_ns for phase in PHASES}
    again, again_launches = _again(terms, parts, launches)
    if not is_again:
        again, again_launches = dict.fromkeys(WITHIN, 0.0 * again_launches), 0.0 * again_launches
    shown = {phase: exposed_in_layer(terms, parts[phase]) for phase in (FORWARD, BACKWARD)}
    backward = {name: np.where(terms.trains, shown[BACKWARD][name] + again[name], 0.0) for name in WITHIN}
    backward_launches = np.where(terms.trains, launches[BACKWARD] + again_launches, 0.0)
    return LayerParts(shown[FORWARD], launches[FORWARD]), LayerParts(backward, backward_launches)


def _again(
    terms: StepTerms, parts: Mapping[str, Mapping[str, Floats]], launches: Mapping[str, Floats]
) -> tuple[dict[str, Floats], Floats]:
    """What the backward pass computes again, and its launches.

    "full": the forward pass, without its end unless the framework runs whole layers; "selective": the attention core;
    "products": all but products and attention, with the exchanges of rows that are shared out.
    """
    policy = terms.runs.recompute
    needed = np.where(terms.recomputes_all, 0.0, 1.0)

    def of(forward: Floats, core: Floats, tail: Floats, *, streams: bool) -> Floats:
        again = np.where(policy == FULL, forward - needed * tail, 0.0) + np.where(policy == SELECTIVE, core, 0.0)
        return again + (np.where(policy == PRODUCTS, forward - tail, 0.0) if streams else 0.0)

    again = {
        name: of(*(parts[phase][name] for phase in (FORWARD, CORE, TAIL)), streams=name == "memory_bound")
        for name in WITHIN
    }
    for axis in AXES:
        shares = (policy == PRODUCTS) & terms.runs.sequence_parallel
        again[axis] += np.where(shares, parts[FORWARD][axis] - parts[TAIL][axis], 0.0)
    return again, of(launches[FORWARD], launches[CORE], launches[TAIL], streams=True)


def _transfer_ns(terms: StepTerms, by: PlanNumbers) -> Floats:
    """Transfers between stages that nothing hides.

    A stage waits until its rows are sent, and with as many micro-batches alive as 1F1B has, for the next stage too:
    every micro-batch pays 2 (pp - 1) / pp transfers, and so do the ends of the pipeline. Where transfers hide ("pp" in
    `overlap`) the ends alone do.
    """
    runs = terms.runs
    one = (exchange_ns(terms.transfer, by) * by.transfer + by.transfer_ns) * np.where(terms.trains, 2.0, 1.0)
    stages = runs.pp - 1
    steady = np.where(runs.hides["pp"], 0.0, runs.microbatches * stages / runs.pp)
    return np.where(runs.pp > 1, one * (steady * runs.interleave + stages), 0.0)


def _gradients_ns(terms: StepTerms, by: PlanNumbers, backward_ns: Floats) -> Floats:
    """Collectives of gradients and parameters that nothing hides; `backward_ns` is the last micro-batch's backward."""
    of = terms.gradients
    reduced, gathered, tied = (exchange_ns(each, by) * by.gradients for each in (of.reduced, of.gathered, of.tied))
    return exposed_gradients(terms, reduced, gathered, backward_ns) + tied
