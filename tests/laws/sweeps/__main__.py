"""A sweep that is killed again and again and goes on: no row is lost, none is doubled.

    python -m tests.laws.sweeps [--kills N] [--seed FIRST] [--points N]

Prints what each run was left with. The exit code is 1 if anything was lost or doubled.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.laws.sweeps.killing import killed_sweep


def main() -> int:
    """Runs one sweep that is killed so often, and prints the outcome."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--points", type=int, default=3000)
    given = parser.parse_args()
    with TemporaryDirectory() as folder:
        outcome = killed_sweep(Path(folder), given.kills, given.points, given.seed)
    for number, run in enumerate(outcome.runs):
        print(f"run {number}: {run.ran:,} points ran, {run.stored:,} rows in the file when it was killed")
    print(f"{given.kills} kills, {given.points:,} points: {outcome.lost} rows lost, {outcome.doubled} doubled")
    return 1 if outcome.lost or outcome.doubled or not outcome.is_right else 0


if __name__ == "__main__":
    sys.exit(main())
