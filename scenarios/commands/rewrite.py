"""`partita rewrite`: writes the graph that a training step becomes on many devices, or in less memory."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ...graph import Graph, graph_def_to_graph, save_graph_def
from ...graph.device_name import find_full_name
from ...graph.formats.saved_model import Signature, TensorSpec
from .failure import ConfigurationError, configuring
from .outputs import check_outputs
from .request import Request, live_nodes, read
from .screen import Screen

_NO_SIGNATURE = Signature({}, {})


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
    devices, placeholders = _devices(graph), _placeholders(graph)
    signature = inputs.signature or _NO_SIGNATURE
    if as_json:
        document = {"file": str(out), "nodes": inputs.graph.nodes, "devices": devices, "placeholders": placeholders}
        screen.json({**document, "feeds": _named(signature.inputs), "fetches": _named(signature.outputs)})
        return
    shown = ", ".join(inputs.cluster.short_names.shorten(name) for name in devices)
    screen.line(f"{out}: {inputs.graph.nodes:,} nodes on {shown or 'no device in particular'}")
    screen.line(f"feed {_as_text(signature.inputs) or ', '.join(placeholders)}")
    if signature.outputs:
        screen.line(f"fetch {_as_text(signature.outputs)}")


def _devices(graph: Graph) -> list[str]:
    """The single devices that nodes request, in order of their names with numbers by size."""
    named = ((find_full_name(name), name) for name in graph.device_names())
    return [name for _, name in sorted((parsed.id, name) for parsed, name in named if parsed and parsed.id is not None)]


def _placeholders(graph: Graph) -> list[str]:
    return [graph.node_name(node) for node, kind in live_nodes(graph) if kind.op_def.record.must_be_fed]


def _named(specs: Mapping[str, TensorSpec]) -> list[dict[str, str]]:
    return [{"name": name, "tensor": spec.tensor} for name, spec in specs.items()]


def _as_text(specs: Mapping[str, TensorSpec]) -> str:
    return ", ".join(f"{name} as {spec.tensor}" for name, spec in specs.items())
