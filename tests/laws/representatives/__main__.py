"""Representatives against all ranks for many drawn cases.

    python -m tests.laws.representatives [--count N] [--seed FIRST] [--whole]

Prints what differs, made as small as it gets (unless `--whole`), and the counts of what is refused by reason. The exit
code is 1 if anything differs.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter

from tests.laws.representatives.cases import RanksCase, drawn
from tests.laws.representatives.running import DIFFERENT, EQUAL, REFUSED, Compared, compared


def safe(case: RanksCase) -> Compared:
    """An exception counts as different."""
    try:
        return compared(case)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is told with the case
        return Compared(DIFFERENT, f"{type(error).__name__}: {error}")


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
    kinds, reasons = Counter[str](), Counter[str]()
    for seed in range(arguments.seed, arguments.seed + arguments.count):
        case = drawn(seed)
        kind, why = safe(case)
        kinds[kind] += 1
        if kind == REFUSED:
            reasons[re.sub(r"\[.*?\]|'[^']*'|/job\S+|\d+", "..", why)] += 1
        if kind == DIFFERENT:
            small = case if arguments.whole else shrunk(case)
            print(f"seed {seed}: {small}\n    {safe(small).why[:600]}", flush=True)
    for reason, count in reasons.most_common():
        print(f"refused {count}: {reason}")
    print(f"{kinds[EQUAL]} equal, {kinds[DIFFERENT]} different, {kinds[REFUSED]} refused")
    return int(kinds[DIFFERENT] > 0)


if __name__ == "__main__":
    raise SystemExit(main())
