"""`partita rewrite`: writes the graph that a training step becomes on many devices, or in less memory."""

from __future__ import annotations

from pathlib import Path

from ...graph import graph_def_to_graph, save_graph_def
from ...graph.device_name import find_full_name
from .failure import ConfigurationError, configuring
from .outputs import check_outputs
from .request import Request, live_nodes, read
from .screen import Screen


def rewrite(request: Request, out: Path, as_json: bool) -> None:
    """Writes the rewritten graph to `out`, and prints its devices and the names to feed and fetch.

    Raises ConfigurationError if no pass is asked for, and for what the passes refuse.
    """
    screen = Screen()
    check_outputs({"--out": out}, request.files())
    if not request.parallel.rewrites:
        raise ConfigurationError("no pass is asked for; add --replicate N, --pipeline P or --recompute full")
    inputs = read(request, screen)
    with screen.working(f"writing {out.name}"), configuring("--out"):
        graph = graph_def_to_graph(inputs.graph.data)
        save_graph_def(graph.to_graph_def(), out)
    named_devices = (
        name for name in graph.device_names() if (parsed := find_full_name(name)) and parsed.id is not None
    )
    devices = sorted(named_devices)
    named = inputs.signature
    feeds = {} if named is None else {name: spec.tensor for name, spec in named.inputs.items()}
    fetches = {} if named is None else {name: spec.tensor for name, spec in named.outputs.items()}
    placeholders = [graph.node_name(n) for n, kind in live_nodes(graph) if kind.op_def.record.must_be_fed]
    if as_json:
        document = {"file": str(out), "nodes": inputs.graph.nodes, "devices": devices, "placeholders": placeholders}
        screen.json({**document, "feeds": feeds, "fetches": fetches})
        return
    screen.line(f"{out}: {inputs.graph.nodes:,} nodes on {len(devices)} devices")
