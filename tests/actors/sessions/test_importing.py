"""What a program pays for that imports sessions: the rooms that most graphs never enter stay out until one does."""

from __future__ import annotations

import subprocess
import sys

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
