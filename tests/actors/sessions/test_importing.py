"""What a program pays for that imports sessions: the rooms that most graphs never enter stay out until one does."""

from __future__ import annotations

import subprocess
import sys

import pytest

OPTIONAL = (
    "partita.actors.plans.local.loops",
    "partita.actors.running.call_kernels",
    "partita.actors.running.from_kernels.calls",
    "partita.actors.running.interpretation",
    "partita.actors.running.traced.callees",
    "partita.devices.cluster_file",
    "partita.devices.timing",
    "partita.graph.formats",
    "partita.graph.gradients",
    "partita.graph.passes.optimising.constant_folding",
    "partita.graph.passes.lowering",
    "partita.graph.shape_inference.infer",
    "numpy.random",
)


def test_sessions_are_imported_without_optional_rooms() -> None:
    """Calls, loops, traces, optimisations, shape inference and cluster files load with the first graph that has them.

    So does what numpy itself loads late.
    """
    code = "import sys; from partita.actors import BlockingSession, open_session; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stdout.split()
    assert [name for name in OPTIONAL if name in loaded] == []


FIRST = """
import sys, threading, trio
from partita.actors import open_cluster_session, open_session
from partita.graph.builder import GraphBuilder

b = GraphBuilder()
b.op("Neg", b.placeholder("x", "float32", (None,)), name="y")
data = b.graph_def()

class Finder:
    def find_spec(self, name, path=None, target=None):
        if threading.current_thread() is threading.main_thread():
            print("loaded", name)

async def main():
    sys.meta_path.insert(0, Finder())
    async with SESSION as session:
        print(*await session.run("y", {"x": [1.0]}))

trio.run(main)
"""


@pytest.mark.parametrize(
    "session",
    [
        'open_session(data, "cpu:2")',
        'open_session(data, "cpu:2", clock="virtual")',
        'open_cluster_session(data, "cpu:2")',
    ],
)
def test_the_first_session_of_a_process_loads_modules_in_threads(session: str) -> None:
    """Opening and first step hold no event loop for imports and files of the catalog."""
    code = FIRST.replace("SESSION", session)
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stdout
    assert printed.split() == ["[-1.]"]
