"""`partita show`: the text of a graph at one stage of its way to the devices.

    raw -> lowered -> placed -> pruned -> partitioned -> plan

Flows in: a request. Flows out: the text of that stage, as `str(graph)`, `partitions_text` and `str(plan)` print it.
Always holds: each stage is the one that `partita run` goes through for the same flags; no kernel runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase

from ...actors.plans.binding import Binder
from ...actors.plans.compiler import compile_plans
from ...actors.plans.levels import Unfoldable
from ...devices import Cluster
from ...devices.state import DeviceState
from ...graph import Graph, lower_functional
from ...graph.partition.printer import partitions_text
from ...graph.printer import graph_text
from .failure import ConfigurationError, configuring
from .partition import cut_of, place, prune
from .request import Loaded, Request, load
from .screen import Screen

_UNPLACED = ("raw", "lowered")


def show(request: Request, stage: str, device: str | None, pattern: str | None, as_json: bool) -> None:
    """Prints the graph of the request at a stage.

    `device` shows what is on that device alone, `pattern` the nodes whose names it fits. Raises ConfigurationError for
    a device that the cluster lacks, for choices that a stage does not have, and as cutting a graph does; as compiling a
    plan does.
    """
    screen = Screen()
    if device is not None and stage in _UNPLACED:
        raise ConfigurationError(f"--device: nothing is on a device yet in a {stage} graph; show a later --stage")
    if pattern is not None and stage == "plan":
        raise ConfigurationError("--node: a plan has instructions, not nodes; show another --stage")
    loaded = load(request, screen)
    wanted = None if device is None else _full_name(device, loaded.cluster)
    text = _text(loaded, stage, wanted, pattern, screen)
    if as_json:
        screen.json({"stage": stage, "text": text})
    else:
        screen.text(text)


def _text(loaded: Loaded, stage: str, device: str | None, pattern: str | None, screen: Screen) -> str:
    def fits(name: str) -> bool:
        return pattern is None or fnmatchcase(name, pattern)

    if stage == "raw":
        return graph_text(loaded.graph, only=fits)
    if stage == "lowered":
        with configuring():
            return graph_text(lower_functional(loaded.graph, inline_calls=loaded.request.inline), only=fits)
    placed = place(loaded, screen)
    if stage == "placed":
        return graph_text(placed.graph, only=_on(placed.graph, device, fits))
    pruned = prune(placed, loaded, screen)
    if stage == "pruned":
        return graph_text(pruned.graph, only=_on(pruned.graph, device, fits))
    parts = cut_of(pruned, screen)
    if device is not None and device not in parts:
        raise ConfigurationError(f"--device: no part of the request is on {device!r}; on {', '.join(parts)} there is")
    if stage == "partitioned":
        return partitions_text(parts, only=fits, shown=list(parts) if device is None else [device])
    return "\n\n".join(text for name, text in _plans(parts).items() if device in (None, name))


def _on(graph: Graph, device: str | None, fits: Callable[[str], bool]) -> Callable[[str], bool]:
    """Chooses by name the nodes of a graph that fit and are on a device, None for any."""
    here = {node.name for node in graph.op_nodes() if device in (None, node.assigned_device)}
    return lambda name: name in here and fits(name)


def _plans(parts: Mapping[str, Graph]) -> dict[str, str]:
    """The text of the plan of every part."""
    try:
        plans = compile_plans([(part, Binder(name, DeviceState(seed=0))) for name, part in parts.items()])
    except Unfoldable as error:
        raise ConfigurationError(f"--stage plan: the graph is interpreted, there is no plan of it: {error}") from error
    return {name: str(plan) for name, plan in zip(parts, plans, strict=True)}


def _full_name(device: str, cluster: Cluster) -> str:
    """The full name of a device that is given in full or in short, as tables print it."""
    short = cluster.short_names.by_device
    found = [name for name in cluster.names if device in (name, short[name])]
    if not found:
        known = ", ".join(short[name] for name in cluster.names)
        raise ConfigurationError(f"--device: there is no device {device!r}; the cluster has {known}")
    return found[0]
