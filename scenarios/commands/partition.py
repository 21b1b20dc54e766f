"""`partita partition`: writes one binary GraphDef per device, the graphs that a session would run for the request."""

from __future__ import annotations

from pathlib import Path

from ...actors.running.make_evaluator import make_evaluator
from ...devices.pipeline import Imported, Lowered, Partitioned, Placed, Pruned
from ...graph import Graph, Progress, save_graph_def, to_graph_def
from ...graph.columns import SINK_ID
from ...graph.device_name import parse_full_name
from .failure import ConfigurationError, configuring
from .missing import placing
from .outputs import check_folder
from .request import Loaded, Request, load
from .screen import Screen, of_nodes

_LOCAL_TASK = "/job:localhost/replica:0/task:0"


def partition(request: Request, out: Path, as_json: bool) -> None:
    """Writes the partition graphs of the request into the folder `out`, and prints what each holds."""
    screen = Screen()
    check_folder(out, "--out")
    loaded = load(request, screen)
    parts = place_and_cut(loaded, screen)
    with configuring("--out"):
        out.mkdir(parents=True, exist_ok=True)
    records: list[dict[str, str | int]] = []
    with screen.working("writing", len(parts), "files") as on_progress:
        for device, part in parts.items():
            file = out / file_name(device)
            with configuring("--out"):
                save_graph_def(to_graph_def(part), file)
            records.append({"device": device, "file": str(file), **_counts(part)})
            on_progress(Progress("writing", len(records), len(parts), "files"))
    if as_json:
        screen.json({"partitions": records})
        return
    short = loaded.cluster.short_names.shorten
    rows = [[short(str(v)) if isinstance(v, str) else f"{v:,}" for v in record.values()] for record in records]
    screen.table(["device", "file", "nodes", "sends", "receives"], rows, left=2)


def place_and_cut(loaded: Loaded, screen: Screen) -> dict[str, Graph]:
    """The graph of each device that takes part in the request, in the order of the cluster.

    Raises ConfigurationError for a graph that cannot be lowered or placed, for names that do not exist, and when no
    node is left to run.
    """
    return optimised(cut_of(prune(place(loaded, screen), loaded, screen), loaded, screen))


def lower(loaded: Loaded) -> Lowered:
    """The graph of the request after the passes over whole graphs; ConfigurationError if it cannot be lowered."""
    with configuring():
        return Imported(loaded.pipeline, loaded.graph).lower()


def place(loaded: Loaded, screen: Screen) -> Placed:
    """Lowers and places the graph of the request; ConfigurationError if it cannot be."""
    requested = loaded.graph.device_names()
    with (
        screen.working(f"placing {of_nodes(loaded.graph)}"),
        placing(loaded.request, loaded.cluster, requested),
    ):
        return lower(loaded).place()


def prune(placed: Placed, loaded: Loaded, screen: Screen) -> Pruned:
    """The client graph of the request; ConfigurationError for names that do not exist."""
    with screen.working(f"pruning {of_nodes(placed.graph)}"), configuring():
        return placed.prune(tuple(loaded.feeds), loaded.fetches, loaded.targets, with_shapes=True)


def cut_of(pruned: Pruned, loaded: Loaded, screen: Screen) -> Partitioned:
    """The graph of each device before the passes over partitions; ConfigurationError when no node is left to run."""
    with screen.working(f"cutting {of_nodes(pruned.graph)}"), configuring():
        cut = pruned.cut(loaded.request.recv_epochs)
        if not any(part.num_nodes > SINK_ID + 1 for part in cut.graphs.values()):
            raise ConfigurationError("the request leaves no node to run; fetch or target something")
    return cut


def optimised(cut: Partitioned) -> dict[str, Graph]:
    """The graph of each device that runs, in the order of the cluster; ConfigurationError for a pass that fails."""
    with configuring("--passes"):
        return cut.optimise(make_evaluator).in_order()


def file_name(device: str) -> str:
    """The file of a device's graph: "gpu1.pb" on the local task, "worker_r0_t2_gpu1.pb" on any other."""
    name = parse_full_name(device)
    local = f"{name.type}{name.id}.pb".lower()
    return local if name.task_name() == _LOCAL_TASK else f"{name.job}_r{name.replica}_t{name.task}_{local}"


def _counts(part: Graph) -> dict[str, int]:
    nodes = list(part.op_nodes())
    return {"nodes": len(nodes), "sends": sum(n.is_send for n in nodes), "receives": sum(n.is_recv for n in nodes)}
