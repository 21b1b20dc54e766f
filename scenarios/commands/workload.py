"""`partita workload`: builds the graph of a workload and writes it, or lists all workloads with their settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from inspect import Parameter
from pathlib import Path

from ...errors import PartitaError
from ...graph import Graph, graph_def_to_graph, save_graph_def
from ...graph.graphdef.sources import parse_graph_def
from ..workloads.registry import Workload, find_workload, workload_names
from .failure import ConfigurationError, configuring
from .outputs import check_outputs
from .request import live_nodes
from .screen import Screen


def workload(name: str | None, settings: Sequence[str], out: Path | None, as_json: bool) -> None:
    """Writes the graph of a workload to `out`, or without a name lists all workloads.

    Raises ConfigurationError for an unknown name or setting, a value that does not fit, and a file that cannot be
    written.
    """
    screen = Screen()
    if name is None:
        if settings or out is not None:
            raise ConfigurationError("--set and --out belong to a workload; name it: partita workload NAME --out FILE")
        _list(screen, as_json)
        return
    with configuring():
        chosen = find_workload(name)
        known = chosen.settings()
    if out is None:
        shown = " ".join(f"--set {_setting(it)}" for it in known.values())
        raise ConfigurationError(f"workload {name!r} needs --out FILE; its settings: {shown or 'none'}")
    check_outputs({"--out": out}, {})
    graph = _built(chosen, _pairs(settings), screen)
    with configuring("--out"):
        save_graph_def(graph.to_graph_def(), out)
    _print(chosen, graph, out, screen, as_json)


def _built(chosen: Workload, settings: Mapping[str, str], screen: Screen) -> Graph:
    """The graph of a workload, imported, so that what is written can be read."""
    with screen.working(f"building {chosen.name}"), configuring():
        try:
            return graph_def_to_graph(parse_graph_def(chosen.graph(settings)))
        except PartitaError:
            raise
        except Exception as error:  # the function of another package may raise anything
            raise ConfigurationError(
                f"workload {chosen.name!r} cannot be built: {type(error).__name__}: {error}; change a setting"
            ) from error


def _pairs(settings: Sequence[str]) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for text in settings:
        name, found, value = text.partition("=")
        if not found:
            raise ConfigurationError(f"--set {text!r} is no NAME=VALUE")
        if name in pairs:
            raise ConfigurationError(f"--set {name}: it is set twice")
        pairs[name] = value
    return pairs


def _print(chosen: Workload, graph: Graph, out: Path, screen: Screen, as_json: bool) -> None:
    devices = sorted(name for name in graph.device_names() if name)
    nodes = dict(live_nodes(graph))
    placeholders = [graph.node_name(n) for n, properties in nodes.items() if properties.op_def.record.must_be_fed]
    if as_json:
        document = {"name": chosen.name, "file": str(out), "nodes": len(nodes)}
        screen.json({**document, "devices": devices, "placeholders": placeholders})
        return
    fed = f"; feed {', '.join(placeholders)}" if placeholders else ""
    screen.line(f"{out}: {len(nodes):,} nodes on {', '.join(devices) or 'no device in particular'}{fed}")


def _list(screen: Screen, as_json: bool) -> None:
    with configuring():
        found = [find_workload(name) for name in workload_names()]
        rows = [(one, [_setting(it) for it in one.settings().values()]) for one in found]
    if as_json:
        documents = [{"name": one.name, "description": one.summary, "settings": settings} for one, settings in rows]
        screen.json({"workloads": documents})
        return
    for one, settings in rows:
        screen.line(f"{one.name}: {one.summary}")
        screen.line(f"    {', '.join(settings) or 'no settings'}")


def _setting(setting: Parameter) -> str:
    """A setting with its default: "layers=4"; "layers=INT" without one."""
    value = setting.annotation.__name__.upper() if setting.default is Parameter.empty else setting.default
    return f"{setting.name}={value}"
