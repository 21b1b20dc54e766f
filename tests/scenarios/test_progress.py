"""Progress of long imports: counted on a terminal, silent elsewhere."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from partita.devices import cut, local_cluster, simulate
from partita.graph import GraphBuilder, Progress, TimedProgress, graph_def_to_graph
from partita.scenarios import GptModel, progress as progress_module, shown_progress
from partita.scenarios.commands.request import GraphFile, import_graph
from partita.scenarios.commands.screen import Screen
from partita.scenarios.planners.searching.search import search
from tests.large_graphs import many_nodes
from tests.scenarios.command_line import CommandLine

NODES = 10_000


class NoPatience:
    """A timer that ends when it starts."""

    daemon = False

    def __init__(self, _: float, action: Callable[[], None]) -> None:
        self.start = action

    def cancel(self) -> None:
        """Does nothing."""

    def join(self) -> None:
        """Does nothing."""


@pytest.mark.parametrize("is_terminal", [True, False])
def test_an_import_shows_how_many_nodes_it_has_read_on_a_terminal_only(
    is_terminal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pipe or a file gets no progress."""
    monkeypatch.setattr(progress_module, "Timer", NoPatience)
    screen, shown = Screen(), StringIO()
    screen.err = Console(file=shown, force_terminal=is_terminal, width=100)
    import_graph(GraphFile(Path("drawn.pb"), many_nodes(NODES), NODES + 1, frozenset()), screen)
    text = shown.getvalue()
    assert ("importing" in text and f"{NODES + 1:,} of {NODES + 1:,} nodes, " in text) if is_terminal else not text


@pytest.mark.parametrize(
    ("total", "unit", "shown_as"),
    [
        (3000, "nodes", r"reading .*1,204 of 3,000 nodes, \d+\.\d s"),
        (5, "", r"reading .*5 of 5, \d+\.\d s"),
        (None, "", r"reading, \d+\.\d s"),
    ],
)
def test_counts_and_times_are_shown(
    total: int | None, unit: str, shown_as: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Items done, their total, and the time; only the time if the total is unknown."""
    monkeypatch.setattr(progress_module, "Timer", NoPatience)
    screen, shown = Screen(), StringIO()
    screen.err = Console(file=shown, force_terminal=True, width=100)
    with screen.working("reading", total, unit) as progress:
        progress(Progress("reading", min(total or 0, 1204), total, unit))
    assert re.search(shown_as, re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown.getvalue()))


@pytest.mark.parametrize(
    ("left_s", "shown_as"),
    [
        (None, r"sweeping .*40 of 200 points, \d+\.\d s"),
        (32.4, "32 s left"),
        (400, "6 min 40 s left"),
        (7500, "2 h 5 min left"),
    ],
)
def test_the_time_left_is_shown(left_s: float | None, shown_as: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the work tells it."""
    monkeypatch.setattr(progress_module, "Timer", NoPatience)
    screen, shown = Screen(), StringIO()
    screen.err = Console(file=shown, force_terminal=True, width=100)
    with screen.working("sweeping") as progress:
        timed = None if left_s is None else TimedProgress("sweeping", 40, 200, "points", left_s)
        progress(timed or Progress("sweeping", 40, 200, "points"))
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown.getvalue())
    assert re.search(shown_as, text)
    assert ("left" in text) == (left_s is not None)


def test_stdout_is_for_results(partita: CommandLine, graph: Path, x: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Progress goes to stderr, so stdout has one document, even on a terminal."""
    monkeypatch.setattr(progress_module, "Timer", NoPatience)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    result = partita("run", graph, "--feed", x, "--devices", "cpu:2", "--json")
    assert json.loads(result.out)["steps"] == 1
    assert "importing" in result.err


def test_all_nodes_are_reported_once() -> None:
    """The counts that the importer reports grow to all, in more than one call."""
    read: list[Progress] = []
    graph_def_to_graph(many_nodes(NODES), on_progress=read.append)
    assert read == sorted(read)
    assert read[-1] == Progress("importing", NODES + 1, NODES + 1, "nodes")
    assert len(read) > 1


class Shell:
    """IPython as a notebook has it: `display` returns a handle by which an output is replaced."""

    kernel = object()

    def __init__(self) -> None:
        self.shown: list[str] = []

    def get_ipython(self) -> Shell:
        """The shell."""
        return self

    def display(self, thing: Any, *, display_id: bool) -> Shell:  # Any: what has a `_repr_html_`
        """Shows something."""
        assert display_id
        self.update(thing)
        return self

    def update(self, thing: Any) -> None:  # Any: as above
        """Shows it in place of what was there."""
        self.shown.append(thing._repr_html_())


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> Shell:
    """This process is that of a notebook."""
    shell = Shell()
    for name in ("IPython", "IPython.display"):
        monkeypatch.setitem(sys.modules, name, shell)
    return shell


def test_a_notebook_has_a_bar(notebook: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """In one output, which keeps the last state; names are escaped."""
    monkeypatch.setattr(progress_module, "PATIENCE_S", 0.0)
    with shown_progress("waiting") as on_progress:
        for done in range(4):
            on_progress(Progress("<b>\x1b reading", done, 3, "files"))
    first, *_, last = notebook.shown
    assert first.startswith('<div><progress max="3" value="0"></progress> &lt;b&gt;\\x1b reading: 0 of 3 files, ')
    assert last.startswith('<div><progress max="3" value="3"></progress> &lt;b&gt;\\x1b reading: 3 of 3 files, ')


def test_what_is_quick_shows_nothing_in_a_notebook(notebook: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """Less than a second."""
    monkeypatch.setattr(progress_module, "PATIENCE_S", 3600.0)
    with shown_progress() as on_progress:
        on_progress(Progress("reading", 1, 3))
    assert notebook.shown == []


def test_a_pipe_shows_no_progress(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor does IPython without a notebook."""
    monkeypatch.setattr(progress_module, "Timer", NoPatience)
    with shown_progress("waiting") as on_progress:
        on_progress(Progress("reading", 1, 3))
    assert capsys.readouterr().err == ""


def test_every_long_function_tells_how_far_it_is() -> None:
    """A search and a simulation, by stages that end with all of them."""
    told: list[Progress] = []
    model = GptModel(layers=2, hidden=64, heads=2, vocabulary=128, positions=64)
    search(model, local_cluster("gpu:2"), global_batch=8, on_progress=told.append)
    builder = GraphBuilder()
    builder.op("Neg", builder.placeholder("x", "float32", (1024,)), name="y")
    simulate(cut(builder, "cpu:1", feeds=["x"], fetches=["y"]), "cpu:1", on_progress=told.append)
    assert [(one.done, one.total) for one in told] == [(0, 3), (1, 3), (2, 3), (3, 3)] * 2
    assert len({one.label for one in told}) == 8
