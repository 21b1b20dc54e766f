"""The pipeline stands by itself: graphs can be cut where nothing runs and nothing is timed."""

from __future__ import annotations

import subprocess
import sys

_CODE = """
import sys
from partita.devices import cut
print(sorted(name for name in sys.modules if name in ("trio", "simpy") or name.startswith("partita.actors")))
"""


def test_cutting_needs_no_event_loop_and_no_clock() -> None:
    """A process that has what cuts graphs has neither trio nor simpy, nor what runs graphs."""
    found = subprocess.run([sys.executable, "-c", _CODE], capture_output=True, text=True, check=True)
    assert found.stdout == "[]\n"


def test_devices_come_without_what_cuts() -> None:
    """`cut` is loaded when it is first asked for: clusters alone start quickly."""
    code = "import sys, partita.devices; print('partita.devices.pipeline' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "False\n"
