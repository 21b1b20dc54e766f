"""What follows the backward pass: collectives of gradients and parameters over dp, and the optimizer's bytes.

    zero 0     all-reduce of gradients
    zero 1, 2  reduce-scatter of gradients, all-gather of parameters behind the update
    zero 3     the same reduce-scatter, and all-gathers in front of the forward and of the backward pass; of several
               micro-batches in front of the first one's passes, of which computation hides the backward one
    zero_group the reduce-scatter and the gathers within a group; all-reduce of the shards over the groups

The ranks of cp have the same weights: they are part of the group. Experts are reduced over those dp ranks that have the
same ones. A head that is tied to an embedding on another stage has its gradient added up with that.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ....graph.arrays import Flags, Floats, Numbers
from ..configurations import Configurations
from ..machine import Machine
from ..sizes.weights import RankWeights
from ..step import PlannedStep
from .exchanges import AxisGroups, ExchangeTimes, exchange_times, groups_along


class GradientTerms(NamedTuple):
    """By row, on the pipeline rank with the most of each."""

    reduced: ExchangeTimes
    """collectives of gradients"""
    gathered: ExchangeTimes
    """collectives of parameters"""
    tied: ExchangeTimes
    """of the embedding with the head of the last stage"""
    optimizer_bytes: Floats
    first: Floats
    """the share of the rank's weights that the embedding has: gathered first, and reduced last"""


def gradient_terms(
    step: PlannedStep, machine: Machine, of: Configurations, used: Numbers, weights: RankWeights
) -> GradientTerms:
    """The terms of each row; all zero for a step that trains nothing."""
    nothing = ExchangeTimes(*(np.zeros(len(of)) for _ in range(3)))
    if not step.trains:
        return GradientTerms(nothing, nothing, nothing, np.zeros(len(of)), np.zeros(len(of)))
    reduced, gathered = nothing, nothing
    shards, shared = weights.shards, of.zero > 0
    for axis, parameters, ranks in (("dp", weights.whole, shards.whole), ("experts", weights.routed, shards.routed)):
        each = _of_group(step, machine, of, used, axis, parameters, ranks)
        reduced, gathered = _sum(reduced, each[0]), _sum(gathered, each[1])
    ends = groups_along("pp", of, machine.per_host)
    pair = AxisGroups(np.where(ends.hosts > 1, 1, np.minimum(of.pp, 2)), np.where(ends.hosts > 1, 2, 1))
    tied = exchange_times(machine, "all_reduce", pair, weights.tied * step.gradient_bytes, used)
    updated = weights.whole / np.where(shared, shards.whole, 1) + weights.routed / np.where(shared, shards.routed, 1)
    first = np.minimum(weights.of_layers["embedding"].whole / (weights.whole + weights.routed), 1.0)
    return GradientTerms(reduced, gathered, _where(weights.tied > 0, tied), step.optimizer_bytes * updated, first)


def _of_group(
    step: PlannedStep,
    machine: Machine,
    of: Configurations,
    used: Numbers,
    axis: str,
    parameters: Floats,
    shards: Floats,
) -> tuple[ExchangeTimes, ExchangeTimes]:
    """What a group with the same parameters exchanges of gradients and parameters, in `shards` where ZeRO has some."""
    groups = groups_along(axis, of, machine.per_host)
    size, has = parameters * step.gradient_bytes, parameters > 0
    sharded = (of.zero > 0) & has
    inner, copies = _parts(groups, np.where(sharded, shards, groups.inside * groups.hosts).astype(np.int64))
    whole = _where(has & ~sharded, exchange_times(machine, "all_reduce", groups, size, used))
    scattered = _where(sharded, exchange_times(machine, "reduce_scatter", inner, size, used))
    across = _where(sharded, exchange_times(machine, "all_reduce", copies, size / shards, used))
    gathers = np.where((of.zero == 3) & (of.microbatches == 1), 2.0, 1.0)
    gathered = exchange_times(machine, "all_gather", inner, parameters * float(step.gathered_bytes), used)
    return (
        _sum(_sum(whole, scattered), across),
        ExchangeTimes(*(column * gathers for column in _where(sharded, gathered))),
    )


def _parts(groups: AxisGroups, ranks: Numbers) -> tuple[AxisGroups, AxisGroups]:
    """Parts of so many neighbours of a group: where the ranks of one are, and those with the same place in each."""
    inside = np.minimum(groups.inside, ranks)
    copies = groups.inside * groups.hosts // ranks
    beside = np.clip(groups.inside // ranks, 1, copies)
    return AxisGroups(inside, -(-ranks // inside)), AxisGroups(beside, -(-copies // beside))


def _sum(one: ExchangeTimes, other: ExchangeTimes) -> ExchangeTimes:
    return ExchangeTimes(*(a + b for a, b in zip(one, other, strict=True)))


def _where(rows: Flags, times: ExchangeTimes) -> ExchangeTimes:
    return ExchangeTimes(*(np.where(rows, column, 0.0) for column in times))
