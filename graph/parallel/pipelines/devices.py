"""The stage of what runs once per step: variables live where they are read, and are updated there.

    w -> read -> forward_s1_m0, ...          w and its read: stage 1
    gradient of w -> Mul -> update of w      stage 1, and with it the slots of the optimizer
    all gradients -> norm -> factor          nodes of no single variable: the stage of their inputs, else the first one

A variable that several stages read is on the first of them.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterable, Mapping

from .region import MicroBatchRegion


def variable_stages(region: MicroBatchRegion, forward: Mapping[int, int]) -> dict[int, int]:
    """The stages of nodes that the forward pass reads and that do not depend on the batch, such as variables."""
    found: dict[int, int] = {}
    for node in reversed(region.step.flow.order):
        if node in region.step.forward and node not in region.nodes and node not in region.batch:
            at = [forward.get(reader, found.get(reader)) for reader in region.readers(node)]
            stages = [stage for stage in at if stage is not None]
            if stages:
                found[node] = min(stages)
    return found


def gradient_stages(region: MicroBatchRegion, variables: Mapping[int, int]) -> dict[int, int]:
    """The stage of the variable that each gradient is for, by the node of the gradient.

    Where nobody said which it is, it is the variable whose update is the fewest nodes away: with clipping by the norm
    of all gradients each gradient leads to every update. In a bucket all of them are equally far away.
    """
    nearest = _nearest_stages(region, variables)
    found: dict[int, int] = {}
    for gradient in region.gradients:
        node, variable = gradient[0], region.variable_of.get(gradient)
        stage = None if variable is None else variables.get(variable)
        if stage is not None:
            found[node] = min(stage, found.get(node, stage))
            continue
        reached = [nearest[reader] for reader in _following(region, node) if reader in nearest]
        if reached:
            found[node] = min(reached)[1]
    return found


def _nearest_stages(region: MicroBatchRegion, variables: Mapping[int, int]) -> dict[int, tuple[int, int]]:
    """By node how many nodes away the nearest update of a variable is, and the stage of that variable."""
    flow = region.step.flow
    found: dict[int, tuple[int, int]] = {}
    for update in region.step.updates:
        stages = _known(variables, flow.variables(update))
        if stages:
            found[update] = 0, min(stages)
    for node in reversed(flow.order):
        if node in region.step.backward and node not in found:
            nearest = min((found[reader] for reader in _following(region, node) if reader in found), default=None)
            if nearest is not None:
                found[node] = nearest[0] + 1, nearest[1]
    return found


def _following(region: MicroBatchRegion, node: int) -> list[int]:
    """The nodes of the backward pass that read a node, or a variable after it was updated by the node."""
    return [reader for reader in region.step.flow.value_readers(node) if reader in region.step.backward]


def outside_stages(
    region: MicroBatchRegion, stage_of: Mapping[int, int], variables: Mapping[int, int]
) -> dict[int, int]:
    """The stages of nodes outside the region, as far as they have one; `variables` come from `variable_stages`."""
    step = region.step
    found = dict(variables)
    for update in step.updates:
        stages = _known(found, step.flow.variables(update))
        if stages:
            found[update] = min(stages)
    inner = [node for node in step.flow.order if node in step.backward and node not in region.nodes]
    of_any = ChainMap(found, dict(stage_of))
    for node in reversed(inner):
        readers = [found.get(reader) for reader in step.flow.value_readers(node)]
        if node not in found and len(set(readers)) == 1 and readers[0] is not None:
            found[node] = readers[0]
    for node in inner:
        stages = _known(of_any, (src for src, _ in region.sources(node))) if node not in found else []
        if stages:
            found[node] = min(stages)
    _add_slots(region, found)
    return found


def _add_slots(region: MicroBatchRegion, found: dict[int, int]) -> None:
    """Adds the variables that only updates use, and then everything that reads a variable by its handle."""
    flow = region.step.flow
    for update in region.step.updates:
        if update in found:
            for source, _ in region.sources(update):
                variable = flow.variable(source)
                if variable is not None:
                    found.setdefault(variable, found[update])
            for variable in flow.variables(update):
                found.setdefault(variable, found[update])
    for node in flow.order:
        if node not in found and node not in region.nodes:
            variable = flow.variable(node)
            if variable is not None and variable in found:
                found[node] = found[variable]


def _known(stages: Mapping[int, int], nodes: Iterable[int]) -> list[int]:
    return [stages[node] for node in nodes if node in stages]
