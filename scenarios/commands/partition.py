"""`partita partition`: the graph of every device, as files.

Flows in: a request. Flows out: one binary GraphDef per device that has a part in it, and a table of what went where.
Always holds: the files are what a session would run for that request, transfers and all.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ...devices.placement import place
from ...graph import Graph, save_graph_def, to_graph_def
from ...graph.columns import SINK_ID
from ...graph.device_name import parse_full_name
from ...graph.passes.lower_functional import lower_functional
from ..cutting import cut_placed
from .failure import ConfigurationError, configuring
from .request import Loaded, Request, load
from .screen import Screen

_LOCAL_TASK = "/job:localhost/replica:0/task:0"


def partition(request: Request, out: Path) -> None:
    """Writes the partition graphs of the request into the folder `out`, and prints what each holds."""
    screen = Screen()
    loaded = load(request, screen)
    parts = place_and_cut(loaded, screen, inline=request.inline)
    with configuring("--out"):
        out.mkdir(parents=True, exist_ok=True)
    rows = []
    with screen.working("writing", len(parts)) as progress:
        for device, part in parts.items():
            file = out / file_name(device)
            with configuring("--out"):
                save_graph_def(to_graph_def(part), file)
            rows.append([device, str(file), *_counts(part)])
            progress(1)
    screen.table(["device", "file", "nodes", "sends", "receives"], rows, left=2)


def place_and_cut(loaded: Loaded, screen: Screen, *, inline: bool) -> dict[str, Graph]:
    """Lowers and places the graph, calls of functions inlined if asked to, and cuts the request out of it: see `cut`.

    Raises ConfigurationError for what cannot be lowered or placed.
    """
    with screen.working("placing"), configuring():
        loaded = replace(loaded, graph=lower_functional(loaded.graph, inline_calls=inline))
        place(loaded.graph, loaded.cluster)
    return cut(loaded, screen)


def cut(loaded: Loaded, screen: Screen) -> dict[str, Graph]:
    """The graph of each device that has a part in the request, in the order of the cluster; the graph is placed.

    Raises ConfigurationError for names that do not exist, or when nothing is left to run.
    """
    with screen.working("cutting"), configuring():
        parts = cut_placed(loaded.graph, loaded.cluster, tuple(loaded.feeds), loaded.fetches, loaded.targets)
        if not any(part.num_nodes > SINK_ID + 1 for part in parts.values()):
            raise ConfigurationError("the request leaves no node to run; fetch or target something")
    return parts


def file_name(device: str) -> str:
    """The file of a device's graph: "gpu1.pb" on the local task, "worker_r0_t2_gpu1.pb" on any other."""
    name = parse_full_name(device)
    local = f"{name.type}{name.id}.pb".lower()
    return local if name.task_name() == _LOCAL_TASK else f"{name.job}_r{name.replica}_t{name.task}_{local}"


def _counts(part: Graph) -> list[str]:
    nodes = list(part.op_nodes())
    return [f"{count:,}" for count in (len(nodes), sum(n.is_send for n in nodes), sum(n.is_recv for n in nodes))]
