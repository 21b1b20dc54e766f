"""`partita sweep`: points of every command, what is printed and written, and what is refused before anything runs."""

from __future__ import annotations

import csv
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from partita.scenarios.commands.planning.command import plan
from partita.scenarios.commands.planning.flags import PlanFlags
from partita.scenarios.executors.dask_cluster import DaskExecutor
from tests.scenarios.command_line import CommandLine, Terminal, assert_one_clear_line
from tests.scenarios.commands.training_files import training_graph

PLAN = """
command = "plan"
results = ["plans.0.step_ms", "plans.0.dp", "plans.0.tp"]
where = ["seq < 256 or split.tp == 2"]

[flags]
family = "gpt"
layers = 4
hidden = 64
heads = 4
positions = 512
vocabulary = 128
gpus = "A100-80GB:2"
search = "dp,zero"

[axes]
seq = { from = 64, to = 256, factor = 2 }
split.tp = [1, 2, 3]
global-batch = [4, 8]
"""
SIMULATE = """
command = "simulate"
[flags]
fetch = "y"
[axes]
graph = ["graph.pb"]
shape.x = ["2,3", "4,3", "4,4"]
"""
WORKLOAD = """
command = "workload"
[flags]
name = "mlp"
out = "mlp_{set.layers}.pb"
[axes]
set.layers = [1, 2]
"""
REWRITE = """
command = "rewrite"
[flags]
loss = "loss"
batch = "x,target"
[axes]
graph = ["step.pb"]
replicate = [2, 4]
"""


@pytest.fixture
def sweep_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a sweep is written, in the folder of the process."""
    monkeypatch.chdir(tmp_path)
    return tmp_path / "s.toml"


def rows_of(text: str) -> list[dict[str, Any]]:  # Any: JSON
    """The rows of what --json prints."""
    rows: list[dict[str, Any]] = json.loads(text)["rows"]  # Any: JSON
    return rows


def test_plans_are_swept(partita: CommandLine, sweep_file: Path) -> None:
    """A row for each point in order; a point that cannot be planned has the command's error."""
    sweep_file.write_text(PLAN)
    document = json.loads(partita.done("sweep", sweep_file, "--executor", "serial", "--json"))
    assert (document["command"], document["failed"]) == ("plan", 4)
    assert document["axes"] == ["seq", "split.tp", "global-batch"]
    assert document["results"] == ["step_ms", "dp", "tp"]
    points = [(row["seq"], row["split.tp"], row["global-batch"]) for row in document["rows"]]
    assert points == [
        (seq, tp, batch) for seq in (64, 128, 256) for tp in (1, 2, 3) for batch in (4, 8) if seq < 256 or tp == 2
    ]
    for row in document["rows"]:
        assert (row["error"] is None) == (row["split.tp"] != 3)
        assert row["tp"] == (row["split.tp"] if row["error"] is None else None)
    alone = json.loads(
        partita.done(
            *("plan", "gpt", "--layers", 4, "--hidden", 64, "--heads", 4, "--positions", 512, "--vocabulary", 128),
            *("--gpus", "A100-80GB:2", "--search", "dp,zero", "--seq", 64, "--split", "tp=2", "--global-batch", 4),
            "--json",
        )
    )
    assert document["rows"][2]["step_ms"] == alone["plans"][0]["step_ms"]


def test_the_output_is_the_same_by_every_executor(
    partita: CommandLine, sweep_file: Path, local_dask: DaskExecutor
) -> None:
    """Byte for byte: what is printed, JSON, and files."""
    sweep_file.write_text(PLAN)
    address: str = local_dask.client.scheduler.address
    printed, tables = set(), set()
    for where in (["--executor", "serial"], [], ["--address", address]):
        printed.add(partita.done("sweep", sweep_file, *where, "--json", "--out", "t.csv"))
        tables.add(Path("t.csv").read_text())
    assert (len(printed), len(tables)) == (1, 1)


def test_a_table_is_printed(partita: CommandLine, terminal: Terminal, sweep_file: Path) -> None:
    """With errors where there are some, cut where a terminal has no room."""
    sweep_file.write_text(PLAN)
    lines = partita.done("sweep", sweep_file, "--executor", "serial").splitlines()
    assert lines[0] == "partita plan: 14 points, 4 with an error"
    assert lines[1].split() == ["seq", "split.tp", "global-batch", "step_ms", "dp", "tp", "error"]
    assert len(lines) == 16
    assert all(len(line) <= 60 for line in terminal(60, "sweep", sweep_file, "--executor", "serial").out.splitlines())


def test_tables_and_reports_are_written(partita: CommandLine, sweep_file: Path) -> None:
    """By their suffix, and what was written is said."""
    pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install '.[parquet]'")
    sweep_file.write_text(PLAN)
    for suffix in ("csv", "json", "parquet"):
        said = partita.done("sweep", sweep_file, "--executor", "serial", "--out", f"t.{suffix}", "--report", "t.html")
        assert said.splitlines()[-2:] == [f"table: t.{suffix}", "report: t.html, to be opened in a browser"]
    assert len(list(csv.reader(Path("t.csv").read_text().splitlines()))) == 15
    assert len(rows_of(Path("t.json").read_text())) == 14
    assert "a sweep of partita plan" in Path("t.html").read_text()


def test_rows_are_kept_and_used(partita: CommandLine, sweep_file: Path) -> None:
    """Those with an error are computed again; other flags are other rows."""
    sweep_file.write_text(PLAN)
    first = partita.done("sweep", sweep_file, "--executor", "serial", "--resume", "s.rows")
    with closing(sqlite3.connect("s.rows")) as connection:
        connection.execute("UPDATE rows SET results = json_set(results, '$.step_ms', 77) WHERE error IS NULL")
        connection.commit()
    again = partita.done("sweep", sweep_file, "--executor", "serial", "--resume", "s.rows")
    assert first != again
    assert again.count(" 77 ") == 10
    sweep_file.write_text(PLAN.replace("layers = 4", "layers = 8"))
    assert " 77 " not in partita.done("sweep", sweep_file, "--executor", "serial", "--resume", "s.rows")


def test_graphs_are_simulated_over_shapes(partita: CommandLine, sweep_file: Path, graph: Path) -> None:
    """With the usual results; a shape that does not fit is an error of its row; a changed graph is computed again."""
    sweep_file.write_text(SIMULATE)
    rows = rows_of(partita.done("sweep", sweep_file, "--executor", "serial", "--json", "--resume", "s.rows"))
    assert [row["error"] is None for row in rows] == [True, True, False]
    assert rows[0]["makespan_ns"] > 0
    assert {"fits", "peak_bytes", "flops", "low_ns"} <= set(rows[0])
    alone = json.loads(partita.done("simulate", graph, "--shape", "x=4,3", "--fetch", "y", "--json"))
    assert rows[1]["makespan_ns"] == alone["makespan_ns"]
    assert rows[1]["peak_bytes"] == max(memory["peak_bytes"] for memory in alone["memory"])


def test_workloads_write_a_graph_for_each_point(partita: CommandLine, sweep_file: Path) -> None:
    """Into a file with the values of axes in its name."""
    sweep_file.write_text(WORKLOAD)
    rows = rows_of(partita.done("sweep", sweep_file, "--executor", "serial", "--json"))
    assert [row["error"] for row in rows] == [None, None]
    assert rows[0]["nodes"] < rows[1]["nodes"]
    assert Path("mlp_1.pb").stat().st_size < Path("mlp_2.pb").stat().st_size


def test_rewrites_need_no_file(partita: CommandLine, sweep_file: Path) -> None:
    """Only the numbers are asked for."""
    training_graph(sweep_file.parent)
    before = sorted(sweep_file.parent.iterdir())
    sweep_file.write_text(REWRITE)
    rows = rows_of(partita.done("sweep", sweep_file, "--executor", "serial", "--json"))
    assert [row["error"] for row in rows] == [None, None]
    assert rows[0]["nodes"] < rows[1]["nodes"]
    assert sorted(sweep_file.parent.iterdir()) == sorted([*before, sweep_file])


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("layers = 4", "layer = 4", ["no flag 'layer'", "did you mean 'layers'"]),
        ("[4, 8]", "[4, 0]", ["--global-batch", "0 is not in the range"]),
        ("[4, 8]", "[]", ["'global-batch' has no value"]),
        ('"gpt"', '"gtp"', ["'gtp'"]),
        ("seq < 256 or", "seq < 1 and", ["no point meets all conditions"]),
    ],
)
def test_a_wrong_file_is_one_line(partita: CommandLine, sweep_file: Path, old: str, new: str, words: list[str]) -> None:
    """Before anything runs."""
    sweep_file.write_text(PLAN.replace(old, new))
    assert_one_clear_line(partita("sweep", sweep_file, "--resume", "s.rows", "--executor", "serial"), 2, *words)


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--out", "t.txt"], ["--out", ".csv, .json, .parquet"]),
        (["--out", "none/t.csv"], ["--out", "no folder"]),
        (["--report", "t.pdf"], ["--report", ".html"]),
        (["--resume", "none/s.rows"], ["--resume", "no folder"]),
        (["--resume", "s.toml"], ["--resume", "is what FILE names"]),
        (["--out", "a.csv", "--resume", "a.csv"], ["--resume", "is what --out names"]),
        (["--workers", "2", "--address", "tcp://h:1"], ["--workers", "--address"]),
        (["--executor", "proceses"], ["processes"]),
    ],
)
def test_wrong_flags_are_one_line(partita: CommandLine, sweep_file: Path, flags: list[str], words: list[str]) -> None:
    """Before the file is read, even."""
    sweep_file.write_text(PLAN)
    assert_one_clear_line(partita("sweep", sweep_file, *flags), 2, *words)
    assert [it.name for it in sweep_file.parent.iterdir()] == ["s.toml"]


def test_points_that_would_write_one_file_are_refused(partita: CommandLine, sweep_file: Path) -> None:
    """As would a name with an axis that does not exist."""
    for name, words in (("mlp.pb", "several points write"), ("{set.layer}.pb", "no axis 'set.layer'")):
        sweep_file.write_text(WORKLOAD.replace("mlp_{set.layers}.pb", name))
        assert_one_clear_line(partita("sweep", sweep_file, "--executor", "serial"), 2, words)


def test_a_missing_file_and_the_rows_of_another_sweep(partita: CommandLine, sweep_file: Path) -> None:
    """Both are told with their names."""
    assert_one_clear_line(partita("sweep", "missing.toml"), 2, "missing.toml", "No such file")
    sweep_file.write_text(PLAN)
    partita.done("sweep", sweep_file, "--executor", "serial", "--resume", "s.rows")
    sweep_file.write_text(WORKLOAD)
    result = partita("sweep", sweep_file, "--executor", "serial", "--resume", "s.rows")
    assert_one_clear_line(result, 2, "has the rows of a sweep of partita plan over seq")


def test_ctrl_c_is_no_error_of_a_row(partita: CommandLine, sweep_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends the sweep, also in the middle of a point in this process; the rows before it are there."""
    ran: list[PlanFlags] = []

    def interrupted(flags: PlanFlags, as_json: bool) -> int:
        ran.append(flags)
        if len(ran) == 3:
            raise KeyboardInterrupt
        return plan(flags, as_json)

    sweep_file.write_text(PLAN)
    monkeypatch.setattr("partita.scenarios.commands.planning.command.plan", interrupted)
    with pytest.raises(KeyboardInterrupt):
        partita("sweep", sweep_file, "--executor", "serial", "--resume", "s.rows")
    assert len(ran) == 3
    with closing(sqlite3.connect("s.rows")) as connection:
        assert connection.execute("SELECT count(*) FROM rows").fetchone() == (2,)


def test_a_sweep_of_errors_has_failed(partita: CommandLine, sweep_file: Path) -> None:
    """Its table says why."""
    sweep_file.write_text(PLAN.replace("split.tp = [1, 2, 3]", "split.tp = [3]").replace(" or split.tp == 2", ""))
    result = partita("sweep", sweep_file, "--executor", "serial", "--json")
    assert (result.code, len(rows_of(result.out))) == (1, 4)
