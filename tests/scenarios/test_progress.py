"""Progress of long imports: counted on a terminal, silent elsewhere."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from partita.graph import graph_def_to_graph
from partita.scenarios import progress as progress_module
from partita.scenarios.commands.request import GraphFile, import_graph
from partita.scenarios.commands.screen import Screen
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
        progress(min(total or 0, 1204))
    assert re.search(shown_as, re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown.getvalue()))


def test_stdout_is_for_results(partita: CommandLine, graph: Path, x: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Progress goes to stderr, so stdout has one document, even on a terminal."""
    monkeypatch.setattr(progress_module, "Timer", NoPatience)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    result = partita("run", graph, "--feed", x, "--devices", "cpu:2", "--json")
    assert json.loads(result.out)["steps"] == 1
    assert "importing" in result.err


def test_all_nodes_are_reported_once() -> None:
    """The counts that the importer reports add up, in more than one call."""
    read: list[int] = []
    graph_def_to_graph(many_nodes(NODES), on_read=read.append)
    assert sum(read) == NODES + 1
    assert len(read) > 1
