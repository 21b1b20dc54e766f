"""Processes that kill themselves with SIGKILL at the first, second, third ... operation of a save, up to its last.

Command line: "save" or "merge", a folder with the files before the save, an empty folder. The second folder gets one
copy of the first per kill, as the kill left it.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
from pathlib import Path

from tests.graph.formats.disks import DiskKilledAt
from tests.graph.formats.versions import merge, save


class Killed(DiskKilledAt):
    """A disk that kills the process."""

    def end_process(self) -> None:
        """Sends SIGKILL, which cannot be caught."""
        os.kill(os.getpid(), signal.SIGKILL)


def main(way: str, template: str, copies: str) -> None:
    """Forks one process per operation until one of them completes."""
    write = {"save": save, "merge": merge}[way]
    operation, status = 0, -1
    while status != 0:
        folder = Path(copies) / str(operation)
        shutil.copytree(template, folder)
        child = os.fork()
        if child == 0:
            write(str(folder / "ckpt"), 9, Killed(operation))
            os._exit(0)
        status = os.waitpid(child, 0)[1]
        assert status == 0 or (os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL)
        operation += 1


if __name__ == "__main__":
    main(*sys.argv[1:])
