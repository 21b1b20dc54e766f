"""Variables and their updates on one device, which all replicas send gradients to.

    parameters:   w, its read, clipping, decay, update                     once, on that device
    replica k:    forward and backward by what the read sent: d_w          gradients go back, are added there, divided

The program of a replica is what is left when variables, whatever has their handles, and the update region are taken
out. What gathers rows of a table runs there too, once for each replica.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from ...columns import SINK_ID
from ..training_step import TrainingStep
from ..value_flow import ValueFlow, is_handle
from .program import Parts


class ServerParts(NamedTuple):
    """What is left of the program, and the nodes that stay on the device of the variables."""

    parts: Parts
    fixed: set[int]


def without_parameters(step: TrainingStep, parts: Parts, outputs: Collection[int]) -> ServerParts:
    """Takes variables and updates out of the program of a replica."""
    flow = step.flow
    holds = {node for node in range(SINK_ID + 1, flow.count) if _has_handle(flow, node)}
    served = (holds & (parts.inside | set(parts.assigns) | _of_variables(flow, holds))) | step.region
    local = {node for node in holds & step.dependent if node not in step.updates and node not in step.region}
    kept = _needed(step, outputs) & parts.inside
    for node in flow.updates:  # what only updates need is there once: rates, counters
        if node in parts.inside:
            before = flow.reached([node], flow.value_sources) & parts.inside
            served |= {n for n in before if n not in step.dependent and n not in kept}
    inside = (parts.inside - served) | (local & parts.inside)
    return ServerParts(Parts(inside, inside & parts.step, {}, []), served)


def _has_handle(flow: ValueFlow, node: int) -> bool:
    kind = flow.kinds[node]
    return kind is not None and any(map(is_handle, (*kind.input_types, *kind.output_types)))


def _of_variables(flow: ValueFlow, holds: set[int]) -> set[int]:
    """What has the handle of a variable, of those nodes."""
    return {node for node in holds if flow.variable(node) is not None}


def _needed(step: TrainingStep, outputs: Collection[int]) -> set[int]:
    """What the values of gradients and outputs need."""
    return step.flow.reached([*(node for node, _ in step.gradients), *outputs], step.flow.value_sources)
