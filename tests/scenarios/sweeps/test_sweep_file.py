"""Files of sweeps: what they say, and errors that name the place."""

from __future__ import annotations

from pathlib import Path

import pytest

from partita.devices.tables import parse_toml
from partita.errors import InvalidArgumentError
from partita.scenarios.sweeps.sweep_file import SweepFile, parse_sweep, read_sweep
from tests.scenarios.sweeps.files import FILE


def parsed(text: str) -> SweepFile:
    """The sweep of a text."""
    return parse_sweep(parse_toml(text, "s.toml"), "s.toml", "/")


def test_a_file_says_what_is_run() -> None:
    """Flags with parts, ranges, lists, conditions, and paths of results."""
    described = parsed(FILE)
    assert described.point.command == "plan"
    assert dict(described.point.flags) == {
        "family": "llama",
        "layers": 2,
        "split": "zero=1",
        "seq": 64,
        "dropout": True,
    }
    assert dict(described.point.results) == {"step_ms": "plans.0.step_ms", "tp": "plans.0.tp"}
    assert described.axes.names == ("gpus", "split.tp", "global-batch")
    points = [tuple(point.values()) for point in described.axes.points()]
    assert points == [(gpus, tp, size) for gpus in "AB" for tp in (1, 2, 4) for size in (4, 8) if tp < size]


def test_lists_of_one_table_go_together() -> None:
    """With [[axes]]."""
    described = parsed(
        'command = "plan"\n[[axes]]\nseq = [1, 2]\n'
        "[[axes]]\nsplit.tp = [1, 2]\nsplit.pp = {from = 8, to = 4, step = -4}"
    )
    assert [tuple(it.values()) for it in described.axes.points()] == [(1, 1, 8), (1, 2, 4), (2, 1, 8), (2, 2, 4)]


def test_results_may_have_names() -> None:
    """A table of columns and paths."""
    described = parsed('command = "simulate"\n[results]\nms = "makespan_ns"\n[axes]\ngraph = ["a"]')
    assert dict(described.point.results) == {"ms": "makespan_ns"}


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('command = "plan"', "", "command is missing"),
        ('command = "plan"', "command = 3", "command is missing"),
        ('command = "plan"', 'command = "plans"', "'plans' cannot be swept; did you mean 'plan'"),
        ("[flags]", "[flag]", "unknown key 'flag'; did you mean 'flags'"),
        ("layers = 2", "layer = 2", "no flag 'layer'; did you mean 'layers'"),
        ("layers = 2", "gpus = 'C'", "gpus is a flag and an axis"),
        ("split.tp = [1, 2, 4]", "split.tp = 1", r"must be a list or a range; write \[1\]"),
        ("factor = 2", "fctor = 2", "axis 'global_batch': unknown key 'fctor'; did you mean 'factor'"),
        ("factor = 2", "factor = 2, step = 1", "leave one out"),
        ("to = 8, ", "", "needs two ends; add to"),
        ("from = 4", "from = 'x'", "'x' is no number"),
        ("split.tp < global_batch", "split.tpp < global_batch", "no axis 'split.tpp'; did you mean 'split.tp'"),
        ("layers = 2", "layers = {from = 1, to = 2}", "is no value"),
        ("results = [", "results = [3, ", "must be a list of names"),
        ("[axes]", "[[axes]]\nseq = [[1], [2, {}]]\n[x]", "unknown key 'x'"),
        ("[axes]", "[axes]]", "this is not TOML"),
        ("where = [", "where = [3, ", "must be a list of names"),
    ],
)
def test_a_wrong_file_is_refused(old: str, new: str, words: str) -> None:
    """The error begins with the file."""
    assert old in FILE
    with pytest.raises(InvalidArgumentError, match=rf"^s\.toml: (.*)({words})"):
        parsed(FILE.replace(old, new))


@pytest.mark.parametrize(
    ("table", "words"),
    [("x = 3", "results: x = 3 must be a path"), ("seq = 'plans'", "results: 'seq' is an axis")],
)
def test_wrong_results_are_refused(table: str, words: str) -> None:
    """Columns must be free, and paths texts."""
    with pytest.raises(InvalidArgumentError, match=words):
        parsed(f'command = "plan"\n[results]\n{table}\n[axes]\nseq = [1]')


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    """As no TOML; one that is missing is an OSError."""
    path = tmp_path / "s.toml"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(InvalidArgumentError, match="this is not TOML"):
        read_sweep(path)
    with pytest.raises(FileNotFoundError):
        read_sweep(tmp_path / "missing.toml")
