"""Draws the progress of long work: as a line on a terminal, as a bar in a notebook, and as nothing elsewhere.

    with shown_progress() as on_progress:
        plan = search(model, cluster, global_batch=512, on_progress=on_progress)

On a terminal "⠋ importing 1,204 of 3,000 nodes, 1.2 s", which goes when the work is done; work that can tell says how
long the rest takes, "sweeping 40 of 200 points, 8.1 s, 32 s left". In a notebook the output of
the cell has the bar and keeps its last state. Work that takes less than a second shows nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from html import escape
from threading import Lock, Timer
from time import monotonic
from typing import Any

from rich.console import Console
from rich.progress import Progress as Bars, ProgressColumn, SpinnerColumn, Task
from rich.text import Text

from ..graph.display.progress import Progress, ProgressCallback, TimedProgress, no_progress
from ..graph.display.visible import visible

PATIENCE_S = 1.0
_BAR = 20  # columns
_BETWEEN_S = 0.2  # updates of a notebook, each of which is a message to the browser


def shown_progress(label: str = "") -> AbstractContextManager[ProgressCallback]:
    """A block with a function to hand over as `on_progress`; shows `label` until it is called."""
    display = _notebook_display()
    if display is not None:
        return _in_notebook(display, Progress(label, 0))
    console = Console(stderr=True, highlight=False, markup=False, emoji=False)
    return shown_late(console, Progress(label, 0)) if console.is_terminal else _hidden()


@contextmanager
def _hidden() -> Iterator[ProgressCallback]:
    yield no_progress


@contextmanager
def shown_late(console: Console, first: Progress) -> Iterator[ProgressCallback]:
    """Shows progress on a terminal if the block takes over a second, at first that which it is given."""
    bars = Bars(SpinnerColumn(), _State(), console=console, transient=True)
    task = bars.add_task("", total=None, progress=first)

    def update(progress: Progress) -> None:
        bars.update(task, progress=progress)

    try:
        with _after_patience(bars.start):
            yield update
    finally:
        if bars.live.is_started:  # stopping before the start would print an empty line
            bars.stop()


@contextmanager
def _after_patience(start: Callable[[], None]) -> Iterator[None]:
    """Calls `start` in a thread if the block takes over a second."""
    timer = Timer(PATIENCE_S, start)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()


class _State(ProgressColumn):
    """The one column beside the spinner: "importing ━━━━━━━━            1,204 of 3,000 nodes, 1.2 s"."""

    def render(self, task: Task) -> Text:
        """The column of a task."""
        progress: Progress = task.fields["progress"]
        took = _done_text(progress, task.elapsed or 0.0)
        if not progress.total:
            return Text(f"{visible(progress.label)}, {took}")
        full = _BAR * min(progress.done, progress.total) // progress.total
        return Text(f"{visible(progress.label)} {'━' * full:<{_BAR}} {took}")


def _done_text(progress: Progress, took_s: float) -> str:
    took = f"{took_s:.1f} s"
    if not progress.total:
        return took
    left = f", {_left_text(progress.left_s)} left" if isinstance(progress, TimedProgress) else ""
    return f"{progress.done:,} of {progress.total:,} {progress.unit}".rstrip() + f", {took}{left}"


def _left_text(seconds: float) -> str:
    """A time to wait, in its largest units: "2 h 5 min", "40 s"."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours:,} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def _notebook_display() -> Callable[..., Any] | None:  # Any: of IPython, which is no dependency
    """IPython's `display` inside a notebook, else None. A notebook has loaded IPython, so that nothing is imported."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    if getattr(shell, "kernel", None) is None:
        return None
    display: Callable[..., Any] = sys.modules["IPython.display"].display
    return display


class _NotebookBar:
    """What a notebook draws, in an output that is replaced."""

    def __init__(self, progress: Progress, took_s: float) -> None:
        self._progress, self._took_s = progress, took_s

    def __repr__(self) -> str:
        return f"{visible(self._progress.label)}: {_done_text(self._progress, self._took_s)}"

    def _repr_html_(self) -> str:
        total, done = self._progress.total, self._progress.done
        bar = f'<progress max="{total}" value="{min(done, total)}"></progress> ' if total else ""
        return f"<div>{bar}{escape(repr(self))}</div>"


@contextmanager
def _in_notebook(display: Callable[..., Any], first: Progress) -> Iterator[ProgressCallback]:
    """Shows progress in the output of a cell."""
    began, lock = monotonic(), Lock()
    latest, shown_at, handle = first, began, None

    def draw() -> None:
        nonlocal shown_at, handle
        shown_at = monotonic()
        bar = _NotebookBar(latest, shown_at - began)
        if handle is None:
            handle = display(bar, display_id=True)
        else:
            handle.update(bar)

    def update(progress: Progress) -> None:
        nonlocal latest
        with lock:  # calls may come from several threads
            latest = progress
            waited = monotonic() - shown_at
            if waited >= (PATIENCE_S if handle is None else _BETWEEN_S):
                draw()

    try:
        yield update
    finally:
        if handle is not None:
            draw()
