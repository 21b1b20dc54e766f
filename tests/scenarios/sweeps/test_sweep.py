"""sweep(): the same table by every executor, rows that are kept, deaths and interrupts."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from partita.errors import FailedPreconditionError, InvalidArgumentError, UnavailableError
from partita.graph import Progress, TimedProgress
from partita.scenarios import SerialExecutor, SweepAxes, SweepTable, WorkerProcesses, sweep
from partita.scenarios.executors.dask_cluster import DaskExecutor
from tests.scenarios.sweeps import swept

AXES = {"a": [1, 2, 3, 4], "b": [1, 2, 3]}


@pytest.fixture(scope="module")
def processes() -> Iterator[WorkerProcesses]:
    """Two worker processes."""
    with WorkerProcesses(2) as executor:
        yield executor


def described(table: SweepTable) -> list[tuple[object, ...]]:
    """Rows with whether they have an error, whose text says how a process ended."""
    return [(*row[:-1], row[-1] is None) for row in table.cells()]


@given(
    st.dictionaries(
        st.sampled_from("ab"), st.lists(st.integers(-9, 9), min_size=1, max_size=4, unique=True), min_size=2
    )
)
def test_a_table_has_a_row_for_each_point(axes: dict[str, list[int]]) -> None:
    """In the order of the axes."""
    points = list(SweepAxes(axes).points())
    table = sweep(swept.total, axes, executor=SerialExecutor())
    assert [row.axes for row in table] == points
    assert table.column("value") == [point["a"] + point["b"] for point in points]  # type: ignore[operator]  # they are ints
    assert (table.axes, table.failed) == (tuple(axes), ())


def test_the_table_is_the_same_by_every_executor(processes: WorkerProcesses) -> None:
    """Serial, our processes, pools of the standard library; numbers of numpy too."""
    serial = sweep(swept.figures, AXES, executor=SerialExecutor())
    assert serial.columns == ("a", "b", "sum", "more", "text", "none", "error")
    assert sweep(swept.figures, AXES, executor=processes) == serial
    with ThreadPoolExecutor(3) as threads:
        assert sweep(swept.figures, AXES, executor=threads) == serial
    assert sweep(swept.figures, AXES) == serial


def test_a_row_has_the_error_of_its_point(processes: WorkerProcesses) -> None:
    """An exception, or the end of its process; all others have results."""
    table = sweep(swept.fails_for_three, AXES, executor=processes)
    assert [tuple(row.axes.values()) for row in table.failed] == [(2, 2), (3, 1), (3, 2), (3, 3)]
    assert table.failed[0].error == "the process that ran it was ended by signal 9 (SIGKILL), 2 times in a row"
    assert table.failed[1].error == "ValueError: no value at 1"
    assert table.column("ratio") == [
        None if a == 3 or (a, b) == (2, 2) else a / b for a in AXES["a"] for b in AXES["b"]
    ]


def test_dask_makes_the_same_table(local_dask: DaskExecutor, processes: WorkerProcesses) -> None:
    """Also where a point kills its workers; a client is taken as an executor too."""
    pytest.importorskip("distributed", reason="distributed is not installed: pip install '.[dask]'")
    client: Any = local_dask.client
    expected = described(sweep(swept.fails_for_three, AXES, executor=processes))
    assert described(sweep(swept.fails_for_three, AXES, executor=local_dask)) == expected
    assert sweep(swept.total, AXES, executor=client) == sweep(swept.total, AXES, executor=client.get_executor())


def test_rows_in_a_file_are_not_computed_again(tmp_path: Path) -> None:
    """Only those that it lacks: new values, and another version of helpers."""
    path, ran = tmp_path / "rows", Counting()
    first = sweep(swept.total, {"a": [1, 2], "b": [3]}, executor=ran, resume=path)
    assert ran.count() == 2
    assert sweep(swept.total, {"a": [1, 2], "b": [3]}, executor=ran, resume=path) == first
    assert ran.count() == 0
    more = sweep(swept.total, {"a": [5, 2, 1], "b": [3]}, executor=ran, resume=path)
    assert (ran.count(), more.column("value")) == (1, [8, 5, 4])
    sweep(swept.total, {"a": [1, 2], "b": [3]}, executor=ran, resume=path, version="2")
    assert ran.count() == 2


class Counting(SerialExecutor):
    """Counts the calls that it runs."""

    def __init__(self) -> None:
        self._ran = 0

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Any:  # Any: as the base's
        self._ran += 1
        return super().submit(fn, *args, **kwargs)

    def count(self) -> int:
        """How many since the last time."""
        ran, self._ran = self._ran, 0
        return ran


def test_rows_with_an_error_are_computed_again(tmp_path: Path) -> None:
    """As their cause may be gone."""
    path, ran = tmp_path / "rows", Counting()
    axes = {"a": [1, 3], "b": [1]}
    first = sweep(swept.fails_for_three, axes, executor=ran, resume=path)
    assert (ran.count(), len(first.failed)) == (2, 1)
    assert sweep(swept.fails_for_three, axes, executor=ran, resume=path) == first
    assert ran.count() == 1


def test_the_content_of_a_file_is_part_of_a_point(tmp_path: Path) -> None:
    """Its row is computed again when it changes."""
    file, ran = tmp_path / "f", Counting()
    axes: dict[str, list[object]] = {"file": [file], "scale": [1, 10]}
    for content, expected, runs in (("abc", [3, 30], 2), ("abc", [3, 30], 0), ("abcd", [4, 40], 2)):
        file.write_text(content)
        table = sweep(swept.size_of, axes, executor=ran, resume=tmp_path / "rows")
        assert (table.column("value"), ran.count()) == (expected, runs)
    assert table.cells()[0][0] == str(file)


def test_an_interrupt_keeps_what_was_done(tmp_path: Path) -> None:
    """Ctrl-C comes out, and the next run goes on after it."""
    path, axes = tmp_path / "rows", {"a": [1, 2, 3, 4]}
    with pytest.raises(KeyboardInterrupt):
        sweep(swept.interrupted, axes, executor=SerialExecutor(), resume=path)
    told: list[Progress] = []
    with pytest.raises(KeyboardInterrupt):
        sweep(swept.interrupted, axes, executor=SerialExecutor(), resume=path, on_progress=told.append)
    assert told == [Progress("sweeping", 2, 4, "points")]


def test_what_on_progress_raises_ends_the_sweep(tmp_path: Path) -> None:
    """The rows so far are in the file."""
    path = tmp_path / "rows"

    def enough(progress: Progress) -> None:
        if progress.done == 2:
            raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        sweep(swept.total, AXES, executor=SerialExecutor(), resume=path, on_progress=enough)
    told: list[Progress] = []
    sweep(swept.total, AXES, executor=SerialExecutor(), resume=path, on_progress=told.append)
    assert told[0].done == 2


def test_progress_has_the_time_left() -> None:
    """Once a point has ended; at the end nothing is left."""
    told: list[Progress] = []
    sweep(swept.total, {"a": [1, 2, 3], "b": [1]}, executor=SerialExecutor(), on_progress=told.append)
    assert told == [("sweeping", done, 3, "points") for done in range(4)]
    left = [progress.left_s if isinstance(progress, TimedProgress) else None for progress in told]
    assert (left[0], left[3]) == (None, 0)
    assert all(seconds is not None and seconds > 0 for seconds in left[1:3])


def test_two_sweeps_cannot_write_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second is refused, and the first goes on."""
    path = tmp_path / "rows"
    monkeypatch.setattr("partita.scenarios.sweeps.row_file._PATIENCE_S", 0.0)

    def second(progress: Progress) -> None:
        with pytest.raises(FailedPreconditionError, match="is being written by another sweep"):
            sweep(swept.total, AXES, executor=SerialExecutor(), resume=path)

    table = sweep(swept.total, AXES, executor=SerialExecutor(), resume=path, on_progress=second)
    assert len(table) == 12


def test_a_function_that_does_not_take_the_axes_is_refused() -> None:
    """Before anything runs, with what Python says of it."""
    with pytest.raises(InvalidArgumentError, match="total does not take the axes as keywords: missing a required"):
        sweep(swept.total, {"a": [1]})
    with pytest.raises(InvalidArgumentError, match="unexpected keyword argument 'c'"):
        sweep(swept.total, {"a": [1], "b": [1], "c": [1]})


def test_an_executor_that_breaks_ends_the_sweep(tmp_path: Path) -> None:
    """A plain pool gives up all its calls; what was done before is kept."""
    path, context = tmp_path / "rows", "spawn"
    import multiprocessing

    pool: Executor = ProcessPoolExecutor(1, multiprocessing.get_context(context))
    with pool, pytest.raises(UnavailableError, match="the executor takes no more calls"):
        sweep(swept.fails_for_three, {"a": [1, 2], "b": [1, 2, 3]}, executor=pool, resume=path)
    table = sweep(swept.fails_for_three, {"a": [1, 2], "b": [1, 3]}, resume=path)
    assert table.failed == ()
