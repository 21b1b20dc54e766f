"""`partita workload`: the list, a graph that is written and can be simulated, and wrong words."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from partita.graph import load_graph_def
from partita.scenarios.workloads import registry
from partita.scenarios.workloads.names import SUMMARIES
from partita.scenarios.workloads.registry import Workload
from tests.scenarios.command_line import CommandLine, assert_one_clear_line


def test_all_are_listed_with_their_settings(partita: CommandLine) -> None:
    """A line for each and one for its settings; as JSON too."""
    lines = partita.done("workload").splitlines()
    assert partita.done("workload", "--list").splitlines() == lines
    assert [line.partition(":")[0] for line in lines[::2]] == list(SUMMARIES)
    assert "    layers=4, features=1024, gpus=1" in lines
    listed = json.loads(partita.done("workload", "--json"))["workloads"]
    assert [one["name"] for one in listed] == list(SUMMARIES)


def test_a_graph_is_written_and_simulated(partita: CommandLine, tmp_path: Path) -> None:
    """With the settings of the flags; what it must be fed is said."""
    out = tmp_path / "mlp.pb"
    flags = ("--set", "layers=2", "--set", "features=8", "--out", out)
    assert partita.done("workload", "mlp", *flags) == (
        f"{out}: {len(load_graph_def(out).node)} nodes on /device:CPU:0, /device:GPU:0; feed x\n"
    )
    assert json.loads(partita.done("workload", "mlp", *flags, "--json"))["placeholders"] == ["x"]
    assert "simulated step time" in partita.done("simulate", out, "--shape", "x=4,8")


def test_a_step_is_timed_without_a_file(partita: CommandLine) -> None:
    """On GPUs as many as the graph asks for, or on those of the flags."""
    told = partita.done("workload", "reduction", "--set", "gpus=2", "--simulate")
    assert told.startswith("simulated step time")
    flags = ("--set", "gpus=2", "--simulate", "--devices", "cpu:1,gpu:3", "--json")
    document = json.loads(partita.done("workload", "reduction", *flags))
    assert [one["device"].rpartition(":")[2] for one in document["devices"]] == ["0", "0", "1", "2"]


def test_text_is_written_for_a_name_of_text(partita: CommandLine, tmp_path: Path) -> None:
    partita.done("workload", "cnn", "--out", tmp_path / "cnn.pbtxt")
    assert (tmp_path / "cnn.pbtxt").read_text().startswith("node {")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("mpl", "--out", "g.pb"), ("'mpl'", "did you mean 'mlp'")),
        (("mlp",), ("needs --out FILE", "--set layers=4")),
        (("--out", "g.pb"), ("--out belongs to a workload; name it",)),
        (("--simulate",), ("--simulate belongs to a workload",)),
        (("--list", "mlp"), ("--list lists all workloads; leave 'mlp' or --list out",)),
        (("mlp", "--out", "g.pb", "--simulate"), ("--out and --simulate exclude each other",)),
        (("mlp", "--simulate", "--devices", "gpu:1", "--cluster", "c.toml"), ("--devices and --cluster exclude",)),
        (("mlp", "--out", "g.pb", "--devices", "gpu:1"), ("workload 'mlp' is for no cluster",)),
        (("mlp", "--simulate"), ("placeholder 'x' (float [?,1024]) has no size of its own", "--shape x=...")),
        (("reduction", "--simulate", "--devices", "gpu:x"), ("--devices",)),
        (("mlp", "--split", "tp=2", "--out", "g.pb"), ("workload 'mlp' has no setting 'split'",)),
        (("mlp", "--set", "layers", "--out", "g.pb"), ("'layers' is no NAME=VALUE",)),
        (("mlp", "--set", "layers=1", "--set", "layers=2", "--out", "g.pb"), ("layers: it is set twice",)),
        (("mlp", "--set", "layers=two", "--out", "g.pb"), ("layers='two' is no int",)),
        (("mlp", "--out", "no/such/folder/g.pb"), ("--out", "no folder")),
    ],
)
def test_wrong_words_are_one_line(partita: CommandLine, arguments: tuple[str, ...], words: tuple[str, ...]) -> None:
    assert_one_clear_line(partita("workload", *arguments), 2, *words)


def test_a_function_that_fails_is_named(partita: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever it raises; nothing is written."""

    def broken(size: int = 0) -> object:
        return 1 // size

    monkeypatch.setitem(registry._WORKLOADS, "broken", Workload("broken", "", broken))  # type: ignore[arg-type] # returns no graph
    result = partita("workload", "broken", "--out", tmp_path / "g.pb")
    assert_one_clear_line(result, 2, "workload 'broken' cannot be built: ZeroDivisionError")
    assert not (tmp_path / "g.pb").exists()
