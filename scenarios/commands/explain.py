"""`partita explain`: where the times of nodes come from, with the devices and shapes that they have in the step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...devices import Explanation, explain as explain_nodes
from ...graph import Graph
from ...graph.suggestions import suggestion
from ...graph.tensor_id import parse_tensor_name
from .costs import check_costs, cost_source_of
from .failure import ConfigurationError, configuring
from .partition import place_and_cut
from .request import Loaded, Request, load
from .screen import Screen, of_nodes


def explain(request: Request, nodes: Sequence[str], as_json: bool) -> None:
    """Prints what the source of costs says of each node.

    Raises ConfigurationError for a node that is not in the step, for one whose time is not that of an op, and for what
    a flag has to say; UnimplementedError for a node that cannot be timed.
    """
    screen = Screen()
    check_costs(request)
    if request.trace_times:
        raise ConfigurationError("--trace-times: to explain the times of a trace write --costs measured:FILE")
    recorded = request.recorded()
    loaded = load(request, screen)
    parts = place_and_cut(loaded, screen)
    _check_nodes(nodes, loaded, parts)
    with screen.working(f"explaining {of_nodes(*parts.values())}"), configuring():
        told = explain_nodes(
            parts,
            loaded.cluster,
            nodes,
            feeds=loaded.fed,
            shapes=loaded.shapes,
            cost_source=cost_source_of(request, parts, loaded.cluster),
            trace=recorded,
            assumed_size=request.assume_size,
        )
    if as_json:
        screen.json({"nodes": [summary(one) for one in told]})
    else:
        screen.text(loaded.cluster.short_names.shorten("\n\n".join(one.text() for one in told)))


def summary(told: Explanation) -> dict[str, object]:
    """An entry of what `explain --json` prints; null for what the source does not say."""
    cost, null = told.cost, told.null_model
    return {
        "node": told.node,
        "device": told.device,
        "what": told.what,
        "time_ns": cost.time_ns,
        "low_ns": cost.low_ns,
        "high_ns": cost.high_ns,
        "provenance": cost.provenance,
        "flops": cost.flops,
        "bytes": cost.bytes,
        "formula": told.formula,
        "inputs": dict(told.inputs),
        "tile": told.tile or None,
        "terms": dict(told.terms),
        "numbers": [number._asdict() for number in told.numbers],
        "rows": told.rows or None,
        "null_model": None if null is None else {"name": null[0], "time_ns": null[1]},
        "assumed": list(told.assumed),
    }


def _check_nodes(nodes: Sequence[str], loaded: Loaded, parts: Mapping[str, Graph]) -> None:
    """ConfigurationError for a node that is not in the step, which says why it is not."""
    known = {node.name for part in parts.values() for node in part.op_nodes()}
    for name in nodes:
        if name not in known:
            raise ConfigurationError(_why_missing(name, loaded, known))


def _why_missing(name: str, loaded: Loaded, known: set[str]) -> str:
    function = _function_with(name, loaded)
    if name in {parse_tensor_name(fed).node for fed in loaded.feeds}:
        return f"node {name!r} is fed, so it takes no time"
    if loaded.graph.find_node(name) is not None:
        return (
            f"node {name!r} is not in the step: the request does not need it, or loops and calls became other nodes; "
            "`partita show --stage partitioned` lists those of the step"
        )
    if function:
        return (
            f"node {name!r} is in function {function!r}: only nodes of the step's own graphs are explained; "
            "without --no-inline, those of called functions are among them"
        )
    return f"the step has no node {name!r}{suggestion(name, known)}"


def _function_with(name: str, loaded: Loaded) -> str:
    """The function that has a node of that name, or of what follows the name of a call; "" if none has."""
    words = name.split("/")
    inner = {"/".join(words[k:]) for k in range(len(words))}
    functions = loaded.graph.library.function
    return next((f.signature.name for f in functions if any(node.name in inner for node in f.node_def)), "")
