"""All that a step's time is made of and no fitted number changes, in columns: `StepTerms`.

Computed once; `assembly.assembled` makes times of it by numbers, so that a fit of the numbers asks no kernel again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ....graph.arrays import Flags, Floats, Numbers
from ...models.split import OVERLAPS
from ..configurations import Configurations
from ..keys import distinct_rows
from ..machine import Machine
from ..sizes.shapes import LayerShapes
from ..sizes.stages import LAYER_KINDS, stage_kinds
from ..sizes.weights import rank_weights
from ..step import PlannedStep
from .exchanges import AxisGroups, ExchangeTimes, exchange_times, groups_along
from .gradients import GradientTerms, gradient_terms
from .kernels import BACKWARD, ITEM_BYTES, PHASES, LayerTimes, layer_times
from .layers import KEYS, layer_works

AXES = ("tp", "cp", "ep")
"""of the exchanges within layers"""


class LayerTerms(NamedTuple):
    """One kind of layer by row, each by phase: times of kernels in ns, bytes that stream, kernels that do, launches.

    `exchanges` are by axis and phase, `launched` counts them.
    """

    products_ns: Mapping[str, Floats]
    attention_ns: Mapping[str, Floats]
    bytes: Mapping[str, Floats]
    streams: Mapping[str, Floats]
    kernels: Mapping[str, Floats]
    exchanges: Mapping[tuple[str, str], ExchangeTimes]
    launched: Mapping[str, Floats]


class StageTerms(NamedTuple):
    """Kinds of pipeline ranks by row, padded: layers by kind [rows, kinds of ranks], how many ranks are alike."""

    layers: Mapping[str, NDArray[np.int64]]
    ranks: NDArray[np.int64]


class Runs(NamedTuple):
    """How the micro-batches of each row run."""

    pp: Numbers
    interleave: Numbers
    microbatches: Numbers
    schedule: Numbers
    recompute: Numbers
    rows: Numbers
    """of a micro-batch on a rank"""
    sequence_parallel: Flags
    gathers_layers: Flags
    """ZeRO 3"""
    hides: Mapping[str, Flags]
    """by axis whether its communication may hide behind computation"""


class StepTerms(NamedTuple):
    """By row (configuration) what its step does; `layers` by kind of layer."""

    runs: Runs
    layers: Mapping[str, LayerTerms]
    stages: StageTerms
    transfer: ExchangeTimes
    """of one transfer of a micro-batch from a stage to the next"""
    gradients: GradientTerms
    bandwidth_bytes_per_s: Floats
    trains: Flags
    recomputes_all: Flags


def step_terms(step: PlannedStep, machine: Machine, of: Configurations) -> StepTerms:
    """The terms of each configuration."""
    kinds, number = distinct_rows({name: of.columns[name] for name in KEYS})
    works = layer_works(step, kinds, of.precision)
    times = dict(zip(works, layer_times([*works.values()], machine, of.precision), strict=True))
    used = np.minimum(machine.per_host, of.devices)
    groups = {axis: groups_along(axis, of, machine.per_host) for axis in AXES}
    layers = {kind: _layer(each, number, machine, groups, used) for kind, each in times.items()}
    stages = _stages(step, of)
    weights = rank_weights(step, of, stages.layers)
    for kind, layer in layers.items():  # a micro-batch's gradients are added up
        layer.bytes[BACKWARD] += sum(weights.of_layers[kind]) * step.accumulation_bytes
    rows = len(of)
    return StepTerms(
        Runs(
            of.pp,
            of.interleave,
            of.microbatches,
            of.schedule,
            of.recompute,
            of.microbatch * step.sequence_length // of.cp,
            of.sequence_parallel,
            of.zero == 3,
            {axis: np.full(rows, axis in of.overlap) for axis in OVERLAPS},
        ),
        layers,
        stages,
        _transfers(step, machine, of, used),
        gradient_terms(step, machine, of, used, weights),
        np.full(rows, float(machine.spec.memory_bandwidth_bytes_per_s)),
        np.full(rows, step.trains),
        np.full(rows, step.recomputes_all),
    )


def _layer(
    times: LayerTimes, number: NDArray[np.intp], machine: Machine, groups: Mapping[str, AxisGroups], used: Numbers
) -> LayerTerms:
    """A layer's terms by row, of those by kind of split."""
    rows = len(number)
    exchanges = {
        (axis, phase): ExchangeTimes(np.zeros(rows), np.zeros(rows), np.zeros(rows))
        for axis in AXES
        for phase in PHASES
    }
    launched = {phase: np.zeros(rows) for phase in PHASES}
    for exchange in times.exchanges:
        runs = exchange.runs[number]
        if exchange.kind == "none" or not runs.any():
            continue
        said = _distinct_exchange(machine, exchange.kind, groups[exchange.axis], exchange.size_bytes[number], used)
        total = exchanges[exchange.axis, exchange.phase]
        for column, values in zip(total, said, strict=True):
            column += values * runs
        launched[exchange.phase] += runs
    products, attention, moved, streams, kernels = (
        {phase: column[number] for phase, column in part.items()} for part in times[:5]
    )
    return LayerTerms(products, attention, moved, streams, kernels, exchanges, launched)


def _distinct_exchange(
    machine: Machine, kind: str, groups: AxisGroups, size_bytes: Floats, used: Numbers
) -> ExchangeTimes:
    """`exchange_times`, asked once for rows that are alike."""
    columns = {"inside": groups.inside, "hosts": groups.hosts, "used": used, "size": size_bytes}
    kinds, number = distinct_rows(columns)
    said = exchange_times(machine, kind, AxisGroups(kinds["inside"], kinds["hosts"]), kinds["size"], kinds["used"])
    return ExchangeTimes(*(column[number] for column in said))


def _stages(step: PlannedStep, of: Configurations) -> StageTerms:
    """The kinds of ranks of each row's pipeline, padded by ranks of no layer."""
    kinds, number = distinct_rows({"pp": of.pp, "interleave": of.interleave})
    found = [
        stage_kinds(step.model, pp, interleave, of.stages)
        for pp, interleave in zip(kinds["pp"].tolist(), kinds["interleave"].tolist(), strict=True)
    ]
    most = max(len(each.ranks) for each in found)

    def padded(columns: Sequence[Numbers]) -> NDArray[np.int64]:
        table = np.zeros((len(columns), most), dtype=np.int64)
        for row, column in enumerate(columns):
            table[row, : len(column)] = column
        return table[number]

    layers = {kind: padded([each.layers[kind] for each in found]) for kind in LAYER_KINDS}
    return StageTerms(layers, padded([each.ranks for each in found]))


def _transfers(step: PlannedStep, machine: Machine, of: Configurations, used: Numbers) -> ExchangeTimes:
    """One transfer of the rows of a micro-batch to the next stage, on average over all stages but the last.

    Of stages that share a host only some send to another one.
    """
    hidden = LayerShapes.of(step.model).hidden
    rows = of.microbatch * step.sequence_length / of.cp * hidden * ITEM_BYTES[of.precision]
    parted = (of.tp > 1) & step.parts_transfers
    sent = rows / np.where(of.sequence_parallel | parted, of.tp, 1)
    groups, one = groups_along("pp", of, machine.per_host), np.ones_like(of.pp)
    between = _distinct_exchange(machine, "send_recv", AxisGroups(one, np.minimum(groups.hosts, 2)), sent, used)
    inside = _distinct_exchange(machine, "send_recv", AxisGroups(np.minimum(groups.inside, 2), one), sent, used)
    share = (groups.hosts - 1) / np.maximum(of.pp - 1, 1)
    said = ExchangeTimes(*(a * share + b * (1 - share) for a, b in zip(between, inside, strict=True)))
    gathers = parted & ~of.sequence_parallel
    if not gathers.any():
        return said
    gathered = _distinct_exchange(machine, "all_gather", groups_along("tp", of, machine.per_host), rows, used)
    return ExchangeTimes(*(a + np.where(gathers, b, 0.0) for a, b in zip(said, gathered, strict=True)))


def joined(several: Sequence[StepTerms]) -> StepTerms:
    """The rows of several steps below each other, so that numbers are fitted to all of them at once."""
    kinds = dict.fromkeys(kind for each in several for kind in each.layers)
    width = max(each.stages.ranks.shape[1] for each in several)
    filled = [
        each._replace(
            layers={kind: each.layers.get(kind) or _like(next(iter(each.layers.values())), 0) for kind in kinds},
            stages=StageTerms(
                {kind: _wider(column, width) for kind, column in each.stages.layers.items()},
                _wider(each.stages.ranks, width),
            ),
        )
        for each in several
    ]
    together: StepTerms = _below(filled)
    return together


def _wider(table: NDArray[np.int64], width: int) -> NDArray[np.int64]:
    return np.pad(table, ((0, 0), (0, width - table.shape[1])))


def _like(terms: Any, value: float) -> Any:  # Any: columns, in tuples and mappings
    """The same columns with one value everywhere."""
    if isinstance(terms, np.ndarray):
        return np.full_like(terms, value)
    if isinstance(terms, Mapping):
        return {name: _like(column, value) for name, column in terms.items()}
    return type(terms)(*(_like(column, value) for column in terms))


def _below(several: Sequence[Any]) -> Any:  # Any: columns, in tuples and mappings
    """Columns of several, one below the other."""
    first = several[0]
    if isinstance(first, np.ndarray):
        return np.concatenate(several)
    if isinstance(first, Mapping):
        return {name: _below([each[name] for each in several]) for name in first}
    return type(first)(*(_below(columns) for columns in zip(*several, strict=True)))
