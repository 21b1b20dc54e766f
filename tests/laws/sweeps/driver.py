"""The sweep that is killed: its function tells a pipe which point begins, and its table is printed at the end."""

from __future__ import annotations

import os
import sys

from partita.scenarios import WorkerProcesses, sweep

AXIS = "number"
_PIPE = "PARTITA_TEST_PIPE"


def numbered(number: int) -> float:
    """What the row of a number has."""
    return number * 1.5


def told(number: int) -> float:
    """The same; the number goes to the pipe first, in one write, so that lines of two processes do not mix."""
    pipe = os.open(os.environ[_PIPE], os.O_WRONLY)
    try:
        os.write(pipe, f"{number}\n".encode())
    finally:
        os.close(pipe)
    return numbered(number)


def main(rows: str, pipe: str, points: str) -> None:
    """Sweeps with a file of rows, on two worker processes."""
    os.environ[_PIPE] = pipe
    from tests.laws.sweeps import driver  # by the name that workers import, which `__main__` is not

    with WorkerProcesses(2) as executor:
        table = sweep(driver.told, {AXIS: range(int(points))}, executor=executor, resume=rows)
    print(*table.column("value"))


if __name__ == "__main__":
    main(*sys.argv[1:])
