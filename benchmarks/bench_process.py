"""The rows "process/..." and "start/...": a script that runs one request, the help of the command line, imports, size
on disk.

Floors: for scripts a process that only parses the file; for the rest an interpreter that does nothing.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from shutil import rmtree

import numpy as np

import partita

from .bench import Bench
from .fresh import Ended, fresh, fresh_command, module_flags
from .rows import Case, Figure, Measured, limit, share
from .running import request
from .sampling import Run, Sample, interleave
from .workloads import Workload, drawn

_SMALL_NODES = 10
_ROOMS = ("actors", "devices", "graph", "rendezvous", "scenarios")


async def _whole(bench: Bench) -> dict[str, tuple[Sample, float]]:
    """Median time and largest peak memory of "ours", "floor" and, if installed, "peer"."""
    if bench.whole:
        return bench.whole
    workload = drawn(bench.sizes.graph_nodes)
    asked = json.dumps(request(bench, workload))
    programs: dict[str, Callable[[], Ended]] = {
        "ours": lambda: fresh("benchmarks.whole_partita", asked),
        "floor": lambda: fresh("benchmarks.whole_floor", str(bench.file(workload))),
    }
    python = bench.peers.found.get("tensorflow")
    if python is not None:
        found = python
        programs["peer"] = lambda: fresh("benchmarks.peers.tensorflow_whole", asked, python=found)
    peaks: dict[str, list[float]] = {name: [] for name in programs}

    def run(name: str) -> Run:
        async def once() -> Sample:
            ended = programs[name]()
            peaks[name].append(float(ended.output))
            return ended.sample

        return once

    taken = await interleave({name: run(name) for name in programs}, bench.sizes.rounds_when_slow)
    bench.whole.update({name: (taken[name], max(peaks[name])) for name in programs})
    return bench.whole


async def _time(bench: Bench) -> Measured:
    figures = {name: Figure.of(sample) for name, (sample, _) in (await _whole(bench)).items()}
    return Measured(figures["ours"], figures.get("peer"), figures["floor"].value)


async def _peak(bench: Bench) -> Measured:
    figures = {name: Figure(peak) for name, (_, peak) in (await _whole(bench)).items()}
    return Measured(figures["ours"], figures.get("peer"), figures["floor"].value)


async def _start(bench: Bench, *arguments: str) -> Measured:
    """An interpreter with some arguments, against one that does nothing."""

    async def ours() -> Sample:
        return fresh_command([sys.executable, *arguments]).sample

    async def bare() -> Sample:
        return fresh_command([sys.executable, "-c", "pass"]).sample

    taken = await interleave({"ours": ours, "bare": bare}, bench.sizes.rounds)
    return Measured(Figure.of(taken["ours"]), None, taken["bare"].wall_s)


async def _small(bench: Bench, command: Callable[[Bench, Workload], list[str]], *, compiled: bool) -> Measured:
    """A process with a graph of a dozen nodes; modules are `compiled` to bytecode as in an installed package, or not.

    Floor: an interpreter that imports numpy and trio.
    """
    asked = command(bench, drawn(_SMALL_NODES))
    cache = bench.folder / "bytecode"
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(cache), "PYTHONDONTWRITEBYTECODE": "" if compiled else "1"}

    async def ours() -> Sample:
        return fresh_command([sys.executable, *asked], environment).sample

    async def bare() -> Sample:
        return fresh_command([sys.executable, "-P", "-c", "import numpy, trio"], environment).sample

    if compiled:
        await ours()
    else:
        rmtree(cache, ignore_errors=True)
    taken = await interleave({"ours": ours, "bare": bare}, bench.sizes.rounds)
    return Measured(Figure.of(taken["ours"]), None, taken["bare"].wall_s)


def _run_command(bench: Bench, workload: Workload) -> list[str]:
    values = bench.folder / "x.npy"
    np.save(values, np.full((), 0.5, np.float32))
    file, fetch = str(bench.file(workload)), workload.fetches[0]
    return ["-P", "-m", "partita", "run", file, "--feed", f"x={values}", "--fetch", fetch]


def _first_session(bench: Bench, workload: Workload) -> list[str]:
    return [*module_flags("benchmarks.whole_partita"), json.dumps(request(bench, workload))]


async def _help(bench: Bench) -> Measured:
    return await _start(bench, "-P", "-m", "partita", "--help")


async def _import(bench: Bench) -> Measured:
    measured = await _start(bench, "-P", "-c", "from partita.actors import open_session")
    python = bench.peers.found.get("tensorflow")
    if python is None:
        return measured
    sample = fresh_command([python, "-P", "-c", "import tensorflow"]).sample
    return Measured(measured.ours, Figure.of(sample), measured.floor)


async def _installed(bench: Bench) -> Measured:
    """Size of the package's files, without compiled Python and without dependencies."""
    root = Path(next(iter(partita.__path__)))
    files = [path for room in _ROOMS for path in (root / room).rglob("*") if path.is_file()]
    ours = sum(path.stat().st_size for path in files if path.suffix != ".pyc")
    peer = bench.peer("tensorflow")
    return Measured(Figure(ours), Figure(peer.call("installed_bytes")) if peer else None)


CASES = [
    Case("process/time", "tensorflow", share(0.2, 0.1), _time),
    Case("process/peak memory", "tensorflow", share(0.25, 0.15), _peak, unit="B"),
    *(
        Case(
            f"process/{what}{ending}",
            "",
            promise if compiled else None,
            partial(_small, command=command, compiled=compiled),
        )
        for what, command, promise in (
            ("partita run, small graph", _run_command, limit(0.7, 0.5)),
            ("first session, small graph", _first_session, None),
        )
        for ending, compiled in (("", True), (", no bytecode", False))
    ),
    Case("start/--help", "", limit(0.1), _help),
    Case("start/import actors", "tensorflow", limit(0.3), _import),
    Case("start/installed size", "tensorflow", None, _installed, unit="B"),
]
