"""Law 8 for many drawn cases: parallel training steps against the one-device step.

    python -m tests.laws.parallel [--count N] [--seed FIRST] [--whole]

Prints what differs, made as small as it gets (unless `--whole`), what passes refuse by reason, and the counts. The exit
code is 1 if anything differs.
"""

from __future__ import annotations

import argparse

import trio

from partita.graph.checking import checking
from tests.laws.outcomes import DIFFERENT, Outcome, Tally
from tests.laws.parallel.cases import ParallelCase, drawn
from tests.laws.parallel.running import outcome
from tests.laws.parallel.shrinking import shrunk


async def safe_outcome(case: ParallelCase) -> Outcome:
    """An exception of a step counts as different."""
    try:
        return await outcome(case)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is told with the case
        return Outcome.of_error(error)


async def fails(case: ParallelCase) -> bool:
    """Whether it is different from one device."""
    return (await safe_outcome(case)).kind == DIFFERENT


async def run(seeds: range, *, is_whole: bool) -> int:
    """Runs the cases; how many differ."""
    tally = Tally()
    for seed in seeds:
        case = drawn(seed)
        found = await safe_outcome(case)
        tally.add(found)
        if found.kind == DIFFERENT:
            small = case if is_whole else await shrunk(case, fails)
            print(f"seed {seed}: {small}\n    {(await safe_outcome(small)).why[:600]}", flush=True)
    return tally.report()


def main() -> int:
    """Runs the command; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.laws.parallel", description=__doc__)
    parser.add_argument("--count", type=int, default=300, help="how many cases")
    parser.add_argument("--seed", type=int, default=0, help="the seed of the first")
    parser.add_argument("--whole", action="store_true", help="print cases as they were drawn")
    arguments = parser.parse_args()
    seeds = range(arguments.seed, arguments.seed + arguments.count)
    with checking():
        return 1 if trio.run(lambda: run(seeds, is_whole=arguments.whole)) else 0


if __name__ == "__main__":
    raise SystemExit(main())
