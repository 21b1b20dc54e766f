"""Drawn models, split over devices, against one device.

    python -m tests.laws.models [--count N] [--seed FIRST] [--family NAME] [--clock]

With `--clock` representatives are simulated against the graph of all ranks, on clusters of small hosts. Prints what
differs, what is refused by reason, and the counts. The exit code is 1 if anything differs.
"""

from __future__ import annotations

import argparse

import trio

from tests.laws.models.cases import FAMILIES, drawn
from tests.laws.models.clock import compared
from tests.laws.models.running import outcome
from tests.laws.outcomes import DIFFERENT, Outcome, Tally


async def safe_outcome(seed: int, family: str, is_clock: bool) -> Outcome:
    """An exception of a step counts as different."""
    try:
        return compared(drawn(seed, family), seed) if is_clock else await outcome(drawn(seed, family))
    except Exception as error:  # noqa: BLE001 - whatever it is, it is told with the case
        return Outcome.of_error(error)


async def run(seeds: range, family: str, is_clock: bool) -> int:
    """Runs the cases; how many differ."""
    tally = Tally()
    for seed in seeds:
        found = await safe_outcome(seed, family, is_clock)
        tally.add(found)
        if found.kind == DIFFERENT:
            print(f"seed {seed}: {drawn(seed, family)}\n    {found.why[:600]}", flush=True)
    return tally.report()


def main() -> int:
    """Runs the command; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.laws.models", description=__doc__)
    parser.add_argument("--count", type=int, default=500, help="how many cases")
    parser.add_argument("--seed", type=int, default=0, help="the seed of the first")
    parser.add_argument("--family", choices=FAMILIES, default="", help="models of one family only")
    parser.add_argument("--clock", action="store_true", help="simulate representatives and all ranks")
    arguments = parser.parse_args()
    seeds = range(arguments.seed, arguments.seed + arguments.count)
    return 1 if trio.run(run, seeds, arguments.family, arguments.clock) else 0


if __name__ == "__main__":
    raise SystemExit(main())
