"""The pipeline needs no event loop and no simulation: graphs can be cut without trio and simpy."""

from __future__ import annotations

import subprocess
import sys

_CODE = """
import sys
from partita.devices import cut
print(sorted(name for name in sys.modules if name in ("trio", "simpy") or name.startswith("partita.actors")))
"""


def test_cutting_needs_no_event_loop_and_no_clock() -> None:
    """A process that imports the pipeline has loaded neither trio nor simpy, nor the actors."""
    process = subprocess.run([sys.executable, "-c", _CODE], capture_output=True, text=True, check=True)
    assert process.stdout == "[]\n"


def test_devices_come_without_what_cuts() -> None:
    """`cut` is loaded at first use, so programs that need only clusters start quickly."""
    code = "import sys, partita.devices; print('partita.devices.pipeline' in sys.modules)"
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert process.stdout == "False\n"
