"""Representatives against all ranks for many drawn cases.

    python -m tests.laws.representatives [--count N] [--seed FIRST] [--whole]

Prints what differs, made as small as it gets (unless `--whole`), and the counts of what is refused by reason. The exit
code is 1 if anything differs.
"""

from __future__ import annotations

import argparse

from tests.laws.outcomes import DIFFERENT, Outcome, Tally
from tests.laws.representatives.cases import RanksCase, drawn
from tests.laws.representatives.running import compared


def safe(case: RanksCase) -> Outcome:
    """An exception counts as different."""
    try:
        return compared(case)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is told with the case
        return Outcome.of_error(error)


def shrunk(case: RanksCase) -> RanksCase:
    """A small case that still differs."""
    while True:
        smaller = next((other for other in case.smaller() if safe(other).kind == DIFFERENT), None)
        if smaller is None:
            return case
        case = smaller


def main() -> int:
    """Runs the command; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.laws.representatives", description=__doc__)
    parser.add_argument("--count", type=int, default=300, help="how many cases")
    parser.add_argument("--seed", type=int, default=0, help="the seed of the first")
    parser.add_argument("--whole", action="store_true", help="print cases as they were drawn")
    arguments = parser.parse_args()
    tally = Tally(r"\[.*?\]|'[^']*'|/job\S+|\d+")
    for seed in range(arguments.seed, arguments.seed + arguments.count):
        case = drawn(seed)
        found = safe(case)
        tally.add(found)
        if found.kind == DIFFERENT:
            small = case if arguments.whole else shrunk(case)
            print(f"seed {seed}: {small}\n    {safe(small).why[:600]}", flush=True)
    return int(tally.report() > 0)


if __name__ == "__main__":
    raise SystemExit(main())
