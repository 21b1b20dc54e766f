"""The command: `python -m benchmarks`, or `make bench`.

Progress goes to stderr, the table to stdout. A row that fails is reported, the others are measured all the same, and
the exit code is 1. Figures are saved after every row.
"""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import click
import trio
from rich.console import Console

from . import (
    bench_cnn,
    bench_collectives,
    bench_contended,
    bench_costs,
    bench_flows,
    bench_gradients,
    bench_holds,
    bench_host,
    bench_import,
    bench_loops,
    bench_models,
    bench_others,
    bench_plan,
    bench_process,
    bench_processes,
    bench_ranks,
    bench_replicated,
    bench_report,
    bench_report_page,
    bench_scale,
    bench_sessions,
    bench_setup,
    bench_simulate,
    bench_steps,
    bench_surroundings,
    bench_sweeps,
    bench_timeline_file,
    bench_virtual,
)
from .bench import QUICK, Bench, Sizes
from .peers.process import KNOWN, Peers
from .rows import Case, Row, Skipped
from .table import load, quantity, save, slower, table

CASES: list[Case] = [
    *bench_import.CASES,
    *bench_setup.CASES,
    *bench_steps.CASES,
    *bench_others.CASES,
    *bench_loops.CASES,
    *bench_collectives.CASES,
    *bench_gradients.CASES,
    *bench_holds.CASES,
    *bench_sessions.CASES,
    *bench_host.CASES,
    *bench_models.CASES,
    *bench_process.CASES,
    *bench_processes.CASES,
    *bench_scale.CASES,
    *bench_flows.CASES,
    *bench_contended.CASES,
    *bench_costs.CASES,
    *bench_ranks.CASES,
    *bench_replicated.CASES,
    *bench_report.CASES,
    *bench_report_page.CASES,
    *bench_plan.CASES,
    *bench_simulate.CASES,
    *bench_virtual.CASES,
    *bench_timeline_file.CASES,
    *bench_cnn.CASES,
    *bench_sweeps.CASES,
    *bench_surroundings.CASES,
]
_PATH = click.Path(path_type=Path, dir_okay=False)
_FOLDER = click.Path(path_type=Path, file_okay=False, exists=True)


@click.command()
@click.option("--peer-python", "pythons", multiple=True, metavar="PATH", help="Interpreter that has peers; repeatable.")
@click.option(
    "--only", multiple=True, metavar="ROW", help='Rows that begin so, "set-up" or "import/C API"; repeatable.'
)
@click.option("--quick", is_flag=True, help="Tiny sizes: shows that every row works, says nothing about speed.")
@click.option(
    "--clock", type=click.Choice(["wall", "cpu"]), default="wall", help="Judge by; CPU time where the machine is busy."
)
@click.option("--save", "saved", type=_PATH, metavar="FILE", help="Write the figures as JSON, after each row.")
@click.option("--data", type=_FOLDER, metavar="DIR", help="Published measurements, in place of the figures quoted.")
@click.option("--baseline", type=_PATH, metavar="FILE", help="Compare with figures saved earlier.")
def main(
    pythons: Sequence[str],
    only: Sequence[str],
    quick: bool,
    clock: str,
    saved: Path | None,
    data: Path | None,
    baseline: Path | None,
) -> None:
    """Measure Partita against whichever peers are installed."""
    cases = [case for case in CASES if not only or case.key.startswith(tuple(only))]
    if not cases:
        raise click.UsageError(f"no row begins with {', '.join(only)}; there are: {', '.join(c.key for c in CASES)}")
    earlier = load(baseline) if baseline else None
    with TemporaryDirectory() as folder, Peers(pythons) as peers:
        rows, failed = measure(cases, Bench(QUICK if quick else Sizes(), peers, Path(folder), data), saved)
        skipped = [name for name in KNOWN if name not in peers.found]
        found = [f"{name} ({python})" for name, python in peers.found.items()]
    Console(width=None if sys.stdout.isatty() else 150).print(table(rows, cpu=clock == "cpu", baseline=earlier))
    print(_machine())
    print(f"peers: {', '.join(found) or 'none'}; skipped, not installed: {', '.join(skipped) or 'none'}")
    if earlier is not None:
        print(f"slower than the baseline: {', '.join(slower(rows, earlier)) or 'none'}")
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


def measure(cases: Sequence[Case], bench: Bench, saved: Path | None = None) -> tuple[list[Row], list[str]]:
    """The rows of some cases, and the keys of those that failed.

    The file `saved` is written after every row, so that a run which is stopped loses nothing.
    """
    rows, failed = [], []
    for case in cases:
        try:
            row = Row(case, trio.run(case.measure, bench))
        except Skipped as missing:
            print(f"{case.key}: skipped, {missing}", file=sys.stderr)
            continue
        except Exception as error:  # noqa: BLE001 - one row must not cost the others
            print(f"{case.key}: {type(error).__name__}: {error}", file=sys.stderr)
            failed.append(case.key)
            continue
        rows.append(row)
        bench.measured[case.key] = row.measured
        if saved is not None:
            save(rows, saved)
        print(f"{case.key}: {quantity(row.measured.ours.value, case.unit)}", file=sys.stderr)
    return rows, failed


def _machine() -> str:
    """The versions and hardware that the figures depend on."""
    cores, load_average = os.cpu_count() or 1, os.getloadavg()[0]
    busy = "; other work is running, so judge by CPU time" if load_average > cores else ""
    return f"machine: Python {platform.python_version()}, {cores} cores, load {load_average:.1f}{busy}"


if __name__ == "__main__":
    main()
