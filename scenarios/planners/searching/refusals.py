"""Why a search has no answer: no configuration is possible, or none fits; with the nearest that is, or does.

What is possible but for one rule is tried as a `Split`, whose checks know the nearest values that work. For memory the
same search is tried with all axes, and then with more GPUs, over the configurations that keep least on each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import NamedTuple

import numpy as np
from attrs import evolve

from ....errors import InvalidArgumentError, PartitaError, ResourceExhaustedError
from ....graph.arrays import Floats
from ...models.nearest import nearest_divisors, nearest_multiples, or_text
from ...models.split import Split
from ..configurations import RECOMPUTATIONS, Configurations
from ..machine import Machine
from ..memory import memory_columns
from ..memory.changes import smallest_change
from ..step import PlannedStep
from .axes import AXES, AskedAxes, values_text
from .enumeration import configurations_of, enumerated
from .grid import Variants, layouts, length
from .space import SearchSpace

_GIB = 1 << 30
_TIMES_MORE = (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)
"""so many times the GPUs are tried for a model that does not fit"""
_SMALLEST: Mapping[str, tuple[int, ...]] = {
    "microbatch": (1,),
    "interleave": (1,),
    "sequence_parallel": (1,),
    "recompute": (RECOMPUTATIONS.index("full"),),
}
"""what keeps least, of axes that are searched"""
_LISTED = 6
_RANKS = ("tp", "pp", "cp", "dp")


def nothing_possible(space: SearchSpace, impossible: Mapping[str, int]) -> PartitaError:
    """The error of a space without possible configurations."""
    table = layouts(space)
    if not length(table):
        return _no_layout(space)
    units = table["dp"] * table["microbatch"]
    divides = space.global_batch % units == 0
    if not divides.any():
        return _no_batch(space.global_batch, sorted({int(unit) for unit in units}))
    first = np.arange(length(table)) == np.argmax(divides)
    row = Variants(space, table).of(table, first)
    try:
        configurations_of(space, row).split(0).check(space.model, space.sequence_length)
    except PartitaError as error:
        return error
    reasons = "; ".join(f"{reason} ({count})" for reason, count in impossible.items())
    return InvalidArgumentError(f"no configuration is possible: {reasons}; fix fewer axes")


def _no_batch(batch: int, units: list[int]) -> PartitaError:
    near = [size for unit in units for size in nearest_multiples(batch, unit)]
    below, above = [size for size in near if size < batch], [size for size in near if size > batch]
    best = or_text([*([max(below)] if below else []), min(above)])
    tried = ", ".join(map(str, units[:_LISTED])) + (", ..." if len(units) > _LISTED else "")
    return InvalidArgumentError(f"global_batch={batch}: no dp * microbatch divides it, of {tried}; give {best}")


def _no_layout(space: SearchSpace) -> PartitaError:
    """No ranks make up the devices, or the schedule runs no such stages."""
    given = space.asked.given
    fixed = {axis: given[axis][0] for axis in _RANKS if axis in given}
    product = int(np.prod([*fixed.values()], dtype=np.int64))
    what = " * ".join(fixed)
    what += f" = {' * '.join(map(str, fixed.values()))} = {product}" if len(fixed) > 1 else f"={product}"
    if not space.uses_all_devices and product > space.devices:
        return InvalidArgumentError(f"split: {what} is more than the {space.devices} devices of the cluster; give less")
    if space.uses_all_devices and space.devices % product:
        near = or_text(nearest_divisors(product, space.devices))
        return InvalidArgumentError(
            f"split: {what} does not divide the {space.devices} devices of the cluster; give a product of {near}"
        )
    return InvalidArgumentError(
        f"split: {values_text(given)} contradict each other on {space.devices} devices: interleave of 2 or more goes "
        "with schedule=interleaved, and dp * tp * pp * cp must be the number of devices; fix fewer axes"
    )


class _Found(NamedTuple):
    """The configuration with the least memory of some GPUs."""

    split: Split
    reserved_bytes: float

    def __str__(self) -> str:
        default = Split()
        parts = (
            f"{field.name}={getattr(self.split, field.name)}"
            for field in fields(Split)
            if getattr(self.split, field.name) != getattr(default, field.name) and field.name in AXES
        )
        return f"{','.join(parts) or 'one device'} reserves {self.reserved_bytes / _GIB:.1f} GiB"


def nothing_fits(
    step: PlannedStep, machine: Machine, space: SearchSpace, configurations: Configurations, reserved: Floats
) -> PartitaError:
    """The error of a space whose configurations all need more memory than a device has; not empty."""
    limit = machine.memory_limit_bytes
    least = _least(configurations, reserved)
    text = (
        f"{type(step.model).__name__} with {step.model.parameters:,} parameters fits nowhere on {space.devices} "
        f"{machine.spec.name}: the smallest of {len(configurations)} configurations, {least}, the limit is "
        f"{limit / _GIB:.1f} GiB"
    )
    everything = evolve(space, asked=AskedAxes(frozenset(AXES), {}, space.asked.same))
    if space.asked.given or len(space.asked.searched) < len(AXES):
        advice = smallest_change(step, configurations, int(np.argmin(reserved)), limit)
        if advice.fits:
            gib = advice.reserved_bytes / _GIB
            return ResourceExhaustedError(f"{text}; with {advice.text} it would reserve {gib:.1f} GiB, which fits")
        wider = _smallest(step, everything)
        if wider and wider.reserved_bytes <= limit:
            return ResourceExhaustedError(f"{text}; with all axes searched {wider}, which fits")
    for times, found in _with_more(step, everything):
        if found.reserved_bytes <= limit:
            return ResourceExhaustedError(f"{text}; on {times * space.devices} GPUs {found}, which fits")
    return ResourceExhaustedError(
        f"{text}; {_TIMES_MORE[-1]} times as many GPUs are not enough: take GPUs with more memory, a shorter sequence "
        "or a smaller model"
    )


def _with_more(step: PlannedStep, space: SearchSpace) -> Iterator[tuple[int, _Found]]:
    for times in _TIMES_MORE:
        found = _smallest(step, evolve(space, devices=times * space.devices))
        if found:
            yield times, found


def _smallest(step: PlannedStep, space: SearchSpace) -> _Found | None:
    """The least memory of a space, of what keeps least; None if nothing is possible."""
    least = _SMALLEST if space.rows is not None else {**_SMALLEST, "sequence_parallel": (0,)}
    asked = evolve(space.asked, given={**least, **space.asked.given})
    configurations = enumerated(evolve(space, asked=asked)).configurations
    if not len(configurations):
        return None
    return _least(configurations, memory_columns(step, configurations).reserved)


def _least(configurations: Configurations, reserved: Floats) -> _Found:
    row = int(np.argmin(reserved))
    return _Found(configurations.split(row), float(reserved[row]))
