"""Law 8 for real programs: training steps in SavedModels, over several devices as on one.

    python -m tests.laws.parallel.programs FOLDER [--devices 2,4] [--zero 0,3] [--names a,b]

FOLDER has a folder for each program: NAME/model is the SavedModel, NAME/case.pkl a pickled dictionary whose "steps" are
requests, each with its "signature" and "feeds" by input. A program counts if its signature has an output "loss"; all
inputs with as many rows as the first are the batch. Compared are all outputs of every step and all variables after the
last one, by 1e-4 and 1e-2 of the larger of their size and 0.01: the programs compute in float32, and where a gradient
is 0 an optimizer that divides by its size makes steps of rounding errors.

Printed are what differs, what is refused or left out and why, and how many programs are equal. The exit code is 1 if
any differs.
"""

from __future__ import annotations

import argparse
import pickle
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import trio

from partita.actors import open_session
from partita.actors.sessions.saved_model import make_ready
from partita.devices import local_cluster
from partita.errors import PartitaError
from partita.graph import Graph, graph_def_to_graph, load_saved_model
from partita.graph.dtypes import Array
from partita.graph.formats.saved_model import SavedGraph, Signature
from partita.graph.tensor_id import parse_tensor_name
from partita.scenarios.commands.parallel import made_parallel
from partita.scenarios.parallel_options import ParallelOptions
from tests.laws.outcomes import DIFFERENT, EQUAL, REFUSED, Outcome

LEFT_OUT = "left out"
OF_OUTPUTS, OF_VARIABLES, SMALLEST = 1e-4, 1e-2, 0.01
STEP = " of step "
LOSS = "loss"


def batch_of(signature: Signature) -> list[str]:
    """The inputs with as many rows as the first that has any."""
    rows = {name: spec.shape[0] for name, spec in signature.inputs.items() if spec.shape}
    return [name for name, count in rows.items() if count == next(iter(rows.values()))]


async def values_of(
    graph: Graph, saved: SavedGraph, signature: Signature, feeds: Sequence[Mapping[str, Any]], cluster: str
) -> dict[str, Array]:
    """Outputs by step and name, and variables by name."""
    found: dict[str, Array] = {}
    async with open_session(graph, cluster) as session:
        await make_ready(session, saved)
        for step, fed in enumerate(feeds):
            inputs = {signature.inputs[name].tensor: value for name, value in fed.items()}
            values = await session.run([spec.tensor for spec in signature.outputs.values()], inputs)
            found.update({f"{name}{STEP}{step}": v for name, v in zip(signature.outputs, values, strict=True)})
        reads = variables(saved, signature)
        found.update(zip(reads, await session.run(reads), strict=True))
    return found


def variables(saved: SavedGraph, signature: Signature) -> list[str]:
    """The nodes that read the variables which the functions of a signature use."""
    calls = {parse_tensor_name(spec.tensor).node for spec in signature.outputs.values()}
    used = {name for node in saved.graph_def.node if node.name in calls for name in node.input}
    reads = [node for node in saved.graph_def.node if node.op == "ReadVariableOp" and node.input[0] in used]
    return sorted({node.input[0]: node.name for node in reversed(reads)}.values())


def difference(ours: Array, theirs: Array) -> float:
    """The largest difference, relative to the size of the value."""
    one, other = (np.asarray(value, np.float64) for value in (theirs, ours))
    return float(np.max(np.abs(one - other), initial=0.0) / max(SMALLEST, np.max(np.abs(one), initial=0.0)))


async def outcomes(folder: Path, options: Sequence[ParallelOptions]) -> list[Outcome]:
    """What a program gives with each of the options."""
    steps = pickle.loads((folder / "case.pkl").read_bytes())["steps"]
    if not (folder / "model").is_dir():
        return [Outcome(LEFT_OUT, "no SavedModel")]
    saved = load_saved_model(folder / "model")
    signature = saved.signature(steps[0]["signature"])
    batch = ",".join(batch_of(signature))
    if LOSS not in signature.outputs or not batch:
        return [Outcome(LEFT_OUT, f"no output {LOSS!r}" if batch else "no batch")]
    feeds = [step["feeds"] for step in steps]
    plain = graph_def_to_graph(saved.graph_def)
    one = await values_of(plain, saved, signature, feeds, "cpu:1")
    found = []
    for each in options:
        how = ParallelOptions(batch=batch, loss=LOSS, replicate=each.replicate, zero=each.zero)
        cluster = f"cpu:{how.replicate}"
        try:
            graph = made_parallel(plain, how, local_cluster(cluster), signature)
        except PartitaError as error:
            found.append(Outcome(REFUSED, str(error)))
            continue
        several = await values_of(graph, saved, signature, feeds, cluster)
        off = {name: difference(several[name], value) for name, value in one.items()}
        limits = {name: OF_OUTPUTS if STEP in name else OF_VARIABLES for name in off}
        worst = sorted((name for name in off if not off[name] <= limits[name]), key=lambda name: -off[name])
        text = "; ".join(f"{name} by {off[name]:.2g}" for name in worst[:4])
        found.append(Outcome(DIFFERENT, f"{len(worst)} of {len(off)} values: {text}") if worst else Outcome(EQUAL))
    return found


async def run(folders: Sequence[Path], options: Sequence[ParallelOptions]) -> int:
    """Runs programs; how many differ."""
    kinds = Counter[str]()
    for folder in folders:
        try:
            found = await outcomes(folder, options)
        except Exception as error:  # noqa: BLE001 - the command goes on with other programs
            found = [Outcome(DIFFERENT, f"{type(error).__name__}: {error}")]
        worst = min((o for o in found), key=lambda o: (DIFFERENT, LEFT_OUT, REFUSED, EQUAL).index(o.kind))
        kinds[worst.kind] += 1
        print(f"{folder.name}: {worst.kind} {worst.why[:400]}", flush=True)
    print(", ".join(f"{count} {kind}" for kind, count in kinds.items()), f"of {len(folders)} programs")
    return kinds[DIFFERENT]


def main() -> int:
    """Runs the command; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.laws.parallel.programs", description=__doc__)
    parser.add_argument("folder", type=Path, help="the programs")
    parser.add_argument("--devices", default="2,4", help="numbers of replicas")
    parser.add_argument("--zero", default="0", help="stages of sharding")
    parser.add_argument("--names", help="programs; all by default")
    arguments = parser.parse_args()
    folders = sorted(path.parent for path in arguments.folder.glob("*/case.pkl"))
    names = arguments.names.split(",") if arguments.names else [folder.name for folder in folders]
    options = [
        ParallelOptions(replicate=int(count), zero=int(stage))
        for count in arguments.devices.split(",")
        for stage in arguments.zero.split(",")
    ]
    return 1 if trio.run(run, [folder for folder in folders if folder.name in names], options) else 0


if __name__ == "__main__":
    raise SystemExit(main())
