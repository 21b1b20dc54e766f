"""Names and values of anybody, on a terminal and in a pipe: no letter of them steers it, and no line is too wide."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from rich.cells import cell_len

from partita.devices.timing import Timeline, TimelineEvent
from partita.graph import GraphBuilder
from partita.scenarios.commands.screen import Screen
from tests.graph.display.test_html import HOSTILE, TEXTS
from tests.scenarios.command_line import COLOURS, CommandLine, Terminal

# What the operating system takes as a word of a command: anything but NUL; and as the name of a file.
WORDS = tuple(text for text in HOSTILE if "\ud800" not in text)
FILES = tuple(text for text in WORDS if "/" not in text and len(text) < 100)
DEVICES = "/job:worker/replica:0/task:1/device:GPU:{}"


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A graph whose values, and whose own file, have hostile texts; names of nodes are checked when it is read."""
    b = GraphBuilder()
    for number, text in enumerate(WORDS):
        b.op("Identity", b.constant(np.array([text.encode()], object), name=f"text{number}"), name=f"same{number}")
    path = tmp_path / f"{FILES[1]}.pb"
    path.write_bytes(b.graph_def().SerializeToString())
    return path


def calls(hostile: Path) -> Iterator[tuple[object, ...]]:
    """Commands that print the texts of a graph, and errors about words of the line."""
    for command in ("run", "simulate", "inspect"):
        yield command, hostile
    for stage in ("raw", "partitioned", "plan"):
        yield "show", hostile, "--stage", stage
    yield "explain", hostile, "same0"
    for word in WORDS:
        for command in ("run", "simulate"):
            yield command, hostile, "--fetch", word
        yield from (("explain", hostile, word), ("show", hostile, "--node", word), ("ops", word), ("devices", word))
        yield from (("scenario", word), ("workload", word), ("inspect", hostile.parent / word[:100]))
        yield from (
            (word,),
            ("run", f"--{word}"),
            ("run", hostile, "--costs", word),
            ("run", hostile, "--devices", word),
        )
        yield "run", hostile, "--feed", f"text0={word[:100]}"


def assert_harmless(text: str) -> None:
    """Nothing but letters and line feeds, which can be written."""
    assert text.replace("\n", "").isprintable()
    text.encode()


def test_no_text_steers_a_terminal(terminal: Terminal, hostile: Path) -> None:
    """At 60 columns; a traceback neither."""
    for call in calls(hostile):
        result = terminal(60, *call)
        assert_harmless(result.out + result.err)
        wide = [line for line in (result.out + result.err).splitlines() if cell_len(line) > 60]
        assert not wide, (call, wide)


def test_no_text_steers_what_reads_a_pipe(partita: CommandLine, hostile: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same for files and pipes, where errors are one line, and tracebacks."""
    for call in calls(hostile):
        result = partita(*call)
        assert_harmless(result.out + result.err)
        assert len(result.err.splitlines()) <= 1
    monkeypatch.setenv("PARTITA_DEBUG", "1")
    assert_harmless(partita("run", hostile, "--fetch", WORDS[2]).err)


def test_json_has_the_texts_as_they_are(partita: CommandLine, hostile: Path) -> None:
    """Escaped as JSON escapes."""
    text = partita.done("run", hostile, "--json")
    assert_harmless(text)
    values = [fetch["value"][0] for fetch in json.loads(text)["fetches"]]
    assert values == list(WORDS)


@pytest.mark.parametrize("variable", ["NO_COLOR", "TERM"])
def test_no_colours_where_none_are_wanted(
    variable: str, partita: CommandLine, terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With NO_COLOR, on a dumb terminal, and in a pipe, which FORCE_COLOR does not make a terminal."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "40")
    piped = partita.done("devices")
    assert max(map(len, COLOURS.sub("", piped).splitlines())) > 40
    assert COLOURS.search(piped)
    monkeypatch.setenv(variable, "dumb")
    assert "\x1b" not in partita.done("devices")
    assert "\x1b" not in terminal.raw(80, "devices").out


@given(
    st.lists(st.tuples(TEXTS, TEXTS, TEXTS), min_size=1, max_size=6),
    st.integers(40, 120),
    st.booleans(),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_printed_line_is_wider_than_the_terminal(
    capsys: pytest.CaptureFixture[str], rows: list[tuple[str, str, str]], width: int, is_narrow: bool
) -> None:
    """Lines, lists, tables and pictures of drawn names; in a pipe each line of them is one line."""
    capsys.readouterr()
    screen = Screen()
    screen.width = width
    screen.out.width = width
    events = [TimelineEvent(*names, "Neg", "compute", n, n + 1) for n, names in enumerate(rows)]
    screen.table([rows[0][0], "second heading", "number"], rows, left=2 if is_narrow else 3)
    screen.text(Timeline(events).render(20))
    screen.line(screen.listed([name for row in rows for name in row]))
    printed = COLOURS.sub("", capsys.readouterr().out)
    assert_harmless(printed)
    assert max(map(cell_len, printed.split("\n"))) <= width


@given(st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=60))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_pipe_gets_every_row_on_a_line(capsys: pytest.CaptureFixture[str], rows: list[tuple[str, str]]) -> None:
    """However many and however long they are."""
    capsys.readouterr()
    Screen().table(["one", "two"], rows, left=2)
    assert len(capsys.readouterr().out.split("\n")) == len(rows) + 2


def test_long_tables_and_pictures_are_cut_on_a_terminal(
    terminal: Terminal, partita: CommandLine, tmp_path: Path
) -> None:
    """And say so, and how to see all; a pipe gets all rows and bars."""
    (tmp_path / "many.toml").write_text('[[device]]\njob = "worker"\nspec = "A100-80GB"\ncount = 60\ntasks = 2\n')
    b = GraphBuilder()
    for number in range(60):
        b.op("Exp", b.placeholder(f"x{number}", "float32", (64,)), name=f"y{number}", device=DEVICES.format(number))
    path = tmp_path / "many.pb"
    path.write_bytes(b.graph_def().SerializeToString())
    call = "simulate", path, "--cluster", tmp_path / "many.toml"
    shown, whole = terminal(80, *call).out, partita.done(*call)
    cut = [line for line in shown.splitlines() if line.startswith("... and ")]
    assert cut[0].endswith("more; a pipe (| less) or --json has all")
    assert cut[1].endswith("more devices")
    assert len(shown.splitlines()) < 120
    assert all(f"task 1 gpu:{number} " in whole for number in range(60))
    assert "... and" not in whole
