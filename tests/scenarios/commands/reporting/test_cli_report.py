"""`--report` and `partita report`: a page of a step, from a simulation, a saved step, or the trace of a real one."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from partita.devices import Timeline, recorded_timeline
from tests.scenarios.command_line import CommandLine, assert_one_clear_line
from tests.scenarios.report.page.pages import read_page

DATA = Path(__file__).parents[3] / "devices" / "timing" / "tracing" / "data"


@pytest.mark.parametrize("command", ["run", "simulate"])
def test_a_step_leaves_a_page_beside_its_trace(
    command: str, partita: CommandLine, graph: Path, x: str, tmp_path: Path
) -> None:
    """The page has the events of the trace, the name of the graph and the line that made it."""
    page, trace = tmp_path / "step.html", tmp_path / "step.timeline"
    arguments = (command, graph, "--feed", x, "--devices", "cpu:2", "--report", page, "--trace", trace)
    text = partita.done(*arguments)
    assert text.splitlines()[-1] == f"report: {page}, to be opened in a browser"
    read = read_page(page.read_bytes())
    assert read.events() == Timeline.load(trace).events
    assert read.document["title"] == graph.name
    assert read.document["command"].startswith(f"partita {command} ")
    assert str(page) in read.document["command"]


def test_with_json_the_page_is_written_and_the_document_is_alone(
    partita: CommandLine, graph: Path, x: str, tmp_path: Path
) -> None:
    """Its makespan is that of the page."""
    page = tmp_path / "step.html"
    printed = json.loads(partita.done("simulate", graph, "--feed", x, "--report", page, "--json"))
    assert read_page(page.read_bytes()).run()["makespan_ns"] == printed["makespan_ns"]


def test_a_simulated_workload_leaves_both(partita: CommandLine, tmp_path: Path) -> None:
    """Without --simulate there is no step to show."""
    page, trace = tmp_path / "step.html", tmp_path / "step.timeline"
    partita.done("workload", "reduction", "--set", "gpus=2", "--simulate", "--report", page, "--trace", trace)
    assert read_page(page.read_bytes()).events() == Timeline.load(trace).events
    refused = partita("workload", "mlp", "--out", tmp_path / "g.pb", "--report", page)
    assert_one_clear_line(refused, 2, "--report", "--simulate in place of --out")
    assert_one_clear_line(partita("workload", "--report", page), 2, "--report belongs to a workload")


def test_a_page_is_no_trace_and_a_trace_no_page(partita: CommandLine, graph: Path, x: str, tmp_path: Path) -> None:
    """Either flag names the other, before anything is read."""
    page, trace = tmp_path / "step.html", tmp_path / "step.json"
    assert_one_clear_line(partita("simulate", graph, "--trace", page), 2, "--trace", f"give --report {page}")
    assert_one_clear_line(partita("simulate", graph, "--report", trace), 2, "--report", "does not end in .html")
    assert_one_clear_line(
        partita("report", DATA / "loop.trace.pb", "--out", trace), 2, "--out", "does not end in .html"
    )
    assert not page.exists()


def test_a_step_without_a_time_has_no_page(partita: CommandLine, graph: Path, tmp_path: Path) -> None:
    """Which is an error where one was asked for; nothing is written."""
    page = tmp_path / "step.html"
    result = partita("simulate", graph, "--feed", "x", "--fetch", "x", "--report", page)
    assert result.code != 0
    assert not page.exists()


def test_a_saved_step_has_the_page_of_its_simulation(partita: CommandLine, graph: Path, x: str, tmp_path: Path) -> None:
    """By default beside the file, under its name; every run of the page is the same but for its name."""
    page, saved = tmp_path / "first.html", tmp_path / "step.timeline"
    partita.done("simulate", graph, "--feed", x, "--devices", "cpu:2", "--report", page, "--trace", saved)
    text = partita.done("report", saved)
    assert text.splitlines()[0] == f"report: {tmp_path / 'step.html'}, to be opened in a browser"
    first, second = (read_page(file.read_bytes()) for file in (page, tmp_path / "step.html"))
    assert {**first.run(), "name": ""} == {**second.run(), "name": ""}
    assert first.arrays.keys() == second.arrays.keys()
    assert all(first.array(name) == second.array(name) for name in first.arrays)


def test_a_measured_step_stands_beside_a_simulated_one(partita: CommandLine, tmp_path: Path) -> None:
    """The trace of TensorFlow beside the simulation of its graph: nodes have the same names."""
    saved, page, trace = tmp_path / "s.timeline", tmp_path / "both.html", DATA / "loop.trace.pb"
    partita.done("simulate", DATA / "loop.graph.pb", "--trace-in", trace, "--fetch", "y", "--trace", saved)
    text = partita.done("report", saved, "--compare", trace, "--out", page)
    assert "loop.trace.pb: memory: the timeline knows no buffers" in text
    assert "slower" in text
    read = read_page(page.read_bytes())
    assert read.events(1) == recorded_timeline(trace).events
    assert read.document["comparison"]["names"] == ["s.timeline", "loop.trace.pb"]
    assert any(row["a_ns"] is not None and row["b_ns"] is not None for row in read.document["comparison"]["rows"])
    printed = json.loads(partita.done("report", saved, "--compare", trace, "--out", page, "--json"))
    assert printed["comparison"] == read.document["comparison"]["totals"]
    assert [run["makespan_ns"] for run in printed["runs"]] == read.document["comparison"]["makespan_ns"]
    assert {missing["panel"] for missing in printed["runs"][1]["missing"]} == {
        "critical path",
        "memory",
        "links",
        "cluster",
    }


def test_a_report_overwrites_neither_of_its_files(partita: CommandLine, tmp_path: Path) -> None:
    """Also where the default name would be that of the file."""
    trace = tmp_path / "trace.html"
    shutil.copy(DATA / "loop.trace.pb", trace)
    before = trace.read_bytes()
    assert_one_clear_line(partita("report", trace), 2, "--out", "is what FILE names")
    same = ("--compare", trace, "--out", trace)
    assert_one_clear_line(partita("report", DATA / "loop.trace.pb", *same), 2, "--out", "is what --compare names")
    assert trace.read_bytes() == before


@pytest.mark.parametrize("content", [b"", b"PK", b"PK\x03\x04 damaged", b"\xff\xfe"])
def test_a_file_that_is_neither_is_one_error(content: bytes, partita: CommandLine, tmp_path: Path) -> None:
    """And no page is left."""
    file = tmp_path / "step.timeline"
    file.write_bytes(content)
    assert_one_clear_line(partita("report", file), 2, "FILE", "step.timeline")
    assert_one_clear_line(partita("report", DATA / "loop.trace.pb", "--compare", file), 2, "--compare", "step.timeline")
    assert list(tmp_path.iterdir()) == [file]
