"""The compiler depends on nothing that runs plans."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from partita.actors import plans

_IMPORT = """
import importlib, sys
for name in {names!r}:
    importlib.import_module("partita.actors.plans." + name)
print(sorted(name for name in sys.modules if name == "trio" or name.startswith({above!r})))
"""


def test_no_plan_needs_what_runs_it() -> None:
    """A process that imports every module of the compiler has neither trio nor what runs plans."""
    names = sorted(path.stem for path in Path(plans.__path__[0]).glob("*.py") if path.stem != "__init__")
    above = ("partita.actors.running", "partita.actors.sessions")
    code = _IMPORT.format(names=names, above=above)
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert process.stdout == "[]\n"
