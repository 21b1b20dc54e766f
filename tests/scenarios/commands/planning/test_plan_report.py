"""`partita plan --report`: the page of what the command prints, and paths that are refused before it plans."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.scenarios.command_line import CommandLine, assert_one_clear_line
from tests.scenarios.commands.planning.plans import FEW, SMALL
from tests.scenarios.report.page.pages import read_page

ON = ("--gpus", "H100-SXM:8", "--global-batch", "32")


def test_a_page_of_training(partita: CommandLine, tmp_path: Path) -> None:
    """The plans of the JSON document, the first one's simulated timeline, and the best by number of GPUs."""
    page = tmp_path / "plan.html"
    words = (*SMALL, *FEW, *ON, "--top", 3, "--simulate", 1, "--gpu-counts", "4,8", "--report", page)
    printed = json.loads(partita.done("plan", *words, "--json"))
    document = read_page(page.read_bytes()).document
    assert (document["kind"], len(document["runs"])) == ("plan", 1)
    rows = document["plans"]["rows"]
    assert [row["cells"]["step ms"] for row in rows] == [plan["step_ms"] for plan in printed["plans"]]
    assert [row["run"] for row in rows] == [0, None, None]
    assert document["runs"][0]["makespan_ns"] <= printed["plans"][0]["simulated_step_ms"] * 1e6
    assert "8 H100-SXM" in document["subtitle"]
    assert document["command"].startswith("partita plan llama --layers 4")
    counts = document["table"]
    keys = [column["key"] for column in counts["columns"]]
    assert counts["axes"] == ["gpus"]
    assert counts["values"] == ["tokens_per_s", "step_ms", "mfu", "gib"]
    for row, counted in zip(counts["rows"], printed["gpu_counts"], strict=True):
        assert row[keys.index("gpus")] == counted["gpus"]
        assert row[keys.index("step_ms")] == counted["plan"]["step_ms"]
        assert (row[keys.index("front")] == "yes") == counted["on_front"]
    assert any("plan 1 simulated" in text for text in document["plans"]["explanation"])
    assert any(text.startswith("searched ") for text in document["plans"]["explanation"])


def test_numbers_of_gpus_without_a_plan_say_why(partita: CommandLine, tmp_path: Path) -> None:
    """In a row without figures."""
    page = tmp_path / "plan.html"
    partita.done("plan", *SMALL, *FEW, *ON, "--gpu-counts", "8,12", "--report", page)
    counts = read_page(page.read_bytes()).document["table"]
    keys = [column["key"] for column in counts["columns"]]
    without = [row for row in counts["rows"] if row[keys.index("step_ms")] is None]
    assert [row[keys.index("gpus")] for row in without] == [12]
    assert without[0][keys.index("reason")]


def test_a_page_of_serving(partita: CommandLine, tmp_path: Path) -> None:
    """The plans of the JSON document; where the page is, is said."""
    page = tmp_path / "serving.html"
    served = (*SMALL[:-2], "--inference", "--prompt", 256, "--output", 64, "--gpus", "H100-SXM:2", "--batch", "1,4")
    assert f"report: {page}, to be opened in a browser" in partita.done("plan", *served, "--report", page)
    printed = json.loads(partita.done("plan", *served, "--json"))
    document = read_page(page.read_bytes()).document
    cells = [row["cells"] for row in document["plans"]["rows"]]
    assert [row["tokens/s"] for row in cells] == [plan["tokens_per_s"] for plan in printed["plans"]]
    assert (document["runs"], document["table"]) == ([], None)


@pytest.mark.parametrize(("name", "words"), [("plan.txt", ".html"), ("no/plan.html", "no folder"), ("", "is a folder")])
def test_what_cannot_be_written_is_refused_first(partita: CommandLine, tmp_path: Path, name: str, words: str) -> None:
    """Before the model is read."""
    refused = partita("plan", "llama", "--config", "no.json", *ON, "--report", tmp_path / name)
    assert_one_clear_line(refused, 2, "--report", words)
