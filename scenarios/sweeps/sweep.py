"""sweep(): a function for each point of some axes, by any executor, into a table.

    axes -> points, with hashes -> those that a file of rows lacks -> executor, few at a time -> rows in the file ->
    table

The process that calls it drives the sweep: it alone hands out points and writes rows. Executors see calls of a function
with keywords, and give back numbers and texts.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any

from ...errors import InvalidArgumentError
from ...graph.display.progress import Progress, ProgressCallback, TimedProgress, no_progress
from ..executors.in_flight import settled
from ..executors.processes import WorkerProcesses
from .axes import GivenAxes, SweepAxes
from .functions import SweptFunction, swept_function
from .points import StoredRow, SweepPoint, swept_points
from .results import ComputedRow, computed, error_text
from .table import SweepRow, SweepTable

_LABEL = "sweeping"


def sweep(
    function: Callable[..., object],
    axes: GivenAxes | SweepAxes,
    *,
    executor: Any = None,  # Any: an Executor, or a Client of dask, whose types a checker need not have
    resume: str | Path | None = None,
    version: str = "",
    on_progress: ProgressCallback | None = None,
) -> SweepTable:
    """The table of a function over all points of some axes: a row each, in their order.

    `function` takes the axes as keywords and returns a number, or a mapping of numbers and texts; it must be importable
    by name. `axes` are those of `SweepAxes`. `executor` is anything with the interface of `concurrent.futures`, or a
    client of dask; worker processes, one for each core, unless given. A row whose point fails, or kills its process
    twice, has an `error`.

    With `resume`, a file, rows are written as they come, and those that are there already are not computed again,
    unless they have an error. A row is known by the values of its axes, the contents of files that they name, the
    version of Partita, the name and code of the function, and `version`; change that one when a helper of the function
    changes.

    `on_progress` is told how many rows are done. Ctrl-C ends at once; rows that were written are kept. Raises
    InvalidArgumentError for a function, axes or a file that cannot be, FailedPreconditionError while another sweep
    writes the file, and UnavailableError when the executor takes no more calls.
    """
    swept, checked = swept_function(function), SweepAxes.of(axes)
    _check_keywords(function, checked)
    return run_sweep(swept, checked, executor=executor, resume=resume, version=version, on_progress=on_progress)


def run_sweep(
    function: SweptFunction,
    axes: SweepAxes,
    *,
    executor: Any = None,  # Any: as above
    resume: str | Path | None = None,
    version: str = "",
    on_progress: ProgressCallback | None = None,
) -> SweepTable:
    """A sweep of a function that is known to be callable where it runs; otherwise as `sweep`."""
    points = swept_points(function, axes, version)
    with ExitStack() as stack:
        rows = None
        if resume is not None:
            from .row_file import opened_rows  # sqlite, which sweeps without a file do without

            rows = stack.enter_context(opened_rows(resume, function.name, axes.names))
        done = {} if rows is None else rows.computed_rows()
        missing = [point for point in points if point.hash not in done]
        told = _told(on_progress or no_progress, points, missing)
        for batch in stack.enter_context(closing(_computed_rows(function, missing, executor, told))):
            if rows is not None:
                rows.add(batch)
            done.update((point.hash, row) for point, row in batch)
    return SweepTable(axes.names, tuple(SweepRow.of(point.axes, point.hash, done[point.hash]) for point in points))


def _check_keywords(function: Callable[..., object], axes: SweepAxes) -> None:
    """InvalidArgumentError where the function does not take the axes as keywords."""
    try:
        inspect.signature(function).bind(**dict.fromkeys(axes.names))
    except TypeError as error:
        raise InvalidArgumentError(f"{function.__qualname__} does not take the axes as keywords: {error}") from None
    except ValueError:  # one that is not written in Python need not say what it takes
        return


def _computed_rows(
    function: SweptFunction, points: Sequence[SweepPoint], executor: Any, told: Callable[[int], None]
) -> Generator[list[StoredRow], None, None]:  # Any: as above
    """The rows of points in batches, as they end."""
    if not points:
        return
    calls = (partial(computed, function.call, point.axes) for point in points)
    with _opened(executor) as opened, closing(settled(opened, calls)) as batches:
        for batch in batches:
            rows = [
                StoredRow(points[number], value if error is None else ComputedRow(None, error_text(error)))
                for number, value, error in batch
            ]
            yield rows
            told(len(rows))


@contextmanager
def _opened(executor: Any) -> Iterator[Executor]:  # Any: as above
    if executor is not None:
        yield executor
        return
    with WorkerProcesses() as processes:
        yield processes


def _told(
    on_progress: ProgressCallback, points: Sequence[SweepPoint], missing: Sequence[SweepPoint]
) -> Callable[[int], None]:
    """A function that is told how many more rows are done, and tells how many all are and how long the rest takes."""
    began, done, known = monotonic(), 0, len(points) - len(missing)
    on_progress(Progress(_LABEL, known, len(points), "points"))

    def more(rows: int) -> None:
        nonlocal done
        done += rows
        left_s = (monotonic() - began) / done * (len(missing) - done)
        on_progress(TimedProgress(_LABEL, known + done, len(points), "points", left_s))

    return more
