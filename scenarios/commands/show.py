"""`partita show`: a graph as text at one stage of the pipeline.

    raw -> lowered -> placed -> pruned -> partitioned -> optimised -> plan

The stages are those of `partita run` with the same flags. Of kernels only those of constants run, for the pass `fold`.
Functions are compiled for plans, which depend on how long they are.
"""

from __future__ import annotations

from collections.abc import Callable
from fnmatch import fnmatchcase

from ...devices import Cluster
from ...devices.pipeline import Partitioned
from ...graph import Graph
from ...graph.partition.printer import partitions_text
from ...graph.printer import graph_text
from .failure import ConfigurationError
from .partition import cut_of, lower, optimised, place, prune
from .request import Loaded, Request, load
from .screen import Screen

_UNPLACED = ("raw", "lowered")


def show(request: Request, stage: str, device: str | None, pattern: str | None, as_json: bool) -> None:
    """Prints the graph of the request at a stage.

    `device` and `pattern` show only nodes on that device, and with a matching name. Raises ConfigurationError for an
    unknown device, for a choice that the stage does not have, and for a graph that cannot be cut; raises as compiling
    does.
    """
    screen = Screen()
    if device is not None and stage in _UNPLACED:
        raise ConfigurationError(f"--device: the nodes of a {stage} graph have no device yet; show a later --stage")
    if pattern is not None and stage == "plan":
        raise ConfigurationError("--node: a plan has instructions, not nodes; show another --stage")
    loaded = load(request, screen)
    full_name = None if device is None else _full_name(device, loaded.cluster)
    text = _text(loaded, stage, full_name, pattern, screen)
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
        return graph_text(lower(loaded).graph, only=fits)
    placed = place(loaded, screen)
    if stage == "placed":
        return graph_text(placed.graph, only=_on(placed.graph, device, fits))
    pruned = prune(placed, loaded, screen)
    if stage == "pruned":
        return graph_text(pruned.graph, only=_on(pruned.graph, device, fits))
    cut = cut_of(pruned, loaded, screen)
    parts = cut.in_order() if stage == "partitioned" else optimised(cut)
    if device is not None and device not in parts:
        raise ConfigurationError(
            f"--device: {device!r} has no part in the request; the devices that have are {', '.join(parts)}"
        )
    if stage != "plan":
        return partitions_text(parts, only=fits, shown=list(parts) if device is None else [device])
    from .plan_texts import plan_texts  # the compiler is of this stage alone

    plans = plan_texts(Partitioned(loaded.pipeline, parts), placed.graph)
    return "\n\n".join(text for name, text in plans.items() if device in (None, name))


def _on(graph: Graph, device: str | None, fits: Callable[[str], bool]) -> Callable[[str], bool]:
    """A predicate on names: the node fits and is on `device`, or on any for None."""
    names = {node.name for node in graph.op_nodes() if device in (None, node.assigned_device)}
    return lambda name: name in names and fits(name)


def _full_name(device: str, cluster: Cluster) -> str:
    """The full name of a device, given by its full or short name."""
    short = cluster.short_names.by_device
    matching = [name for name in cluster.names if device in (name, short[name])]
    if not matching:
        known = ", ".join(short[name] for name in cluster.names)
        raise ConfigurationError(f"--device: there is no device {device!r}; the cluster has {known}")
    return matching[0]
