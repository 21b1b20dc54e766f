"""Output files are checked before anything is read, restored or run."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from tests.scenarios.command_line import CommandLine, assert_one_clear_line

FILES = [("run", "--out"), ("run", "--trace"), ("simulate", "--trace"), ("run", "--report"), ("simulate", "--report")]


@pytest.fixture
def untouched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails the test if a graph is read: outputs are checked first."""

    def read(*_: object) -> None:
        raise AssertionError("the request was read before its outputs were checked")

    for command in ("run", "request"):
        monkeypatch.setattr(f"partita.scenarios.commands.{command}.read", read)


@pytest.mark.usefixtures("untouched")
@pytest.mark.parametrize(("command", "flag"), FILES)
def test_a_file_that_cannot_be_written_is_refused_first(
    command: str, flag: str, partita: CommandLine, graph: Path, tmp_path: Path
) -> None:
    """A missing folder, a file as folder, a folder as file, an impossible name; nothing has been created."""
    (tmp_path / "file").write_text("mine")
    before = sorted(tmp_path.iterdir())
    for path, words in {
        "no/such/out": ["no folder", "make it first"],
        "file/out": ["is not a folder"],
        ".": ["is a folder; give a file"],
        f"{'x' * 300}.html": ["File name too long"],
        graph.name: ["is what GRAPH names"],
    }.items():
        assert_one_clear_line(partita(command, graph, flag, tmp_path / path), 2, flag, *words)
    assert sorted(tmp_path.iterdir()) == before
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.usefixtures("untouched")
def test_permissions_are_asked_for(
    partita: CommandLine, graph: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the file if it exists, else of its folder."""
    (tmp_path / "old").write_text("mine")
    monkeypatch.setattr(os, "access", lambda path, _: Path(path) == graph)
    assert_one_clear_line(partita("run", graph, "--out", tmp_path / "old"), 2, "--out", "no permission to write", "old")
    assert_one_clear_line(partita("run", graph, "--trace", tmp_path / "new"), 2, "--trace", "no permission to write in")
    assert_one_clear_line(partita("partition", graph, "--out", tmp_path / "a" / "b"), 2, "--out", "no permission")


@pytest.mark.usefixtures("untouched")
def test_two_outputs_need_two_files(partita: CommandLine, graph: Path, tmp_path: Path) -> None:
    """In any spelling; and the cluster file cannot be overwritten."""
    (tmp_path / "c.toml").write_text("[[device]]\nspec = 'generic-cpu'\n")
    same = ["--trace", tmp_path / "x.html", "--report", tmp_path / "x.html"]
    assert_one_clear_line(partita("simulate", graph, *same), 2, "--report", "is what --trace names")
    same = ["--out", tmp_path / "x", "--trace", tmp_path / "." / "y" / ".." / "x"]
    assert_one_clear_line(partita("run", graph, *same), 2, "--trace", "is what --out names")
    over = ["--cluster", tmp_path / "c.toml", "--out", tmp_path / "c.toml"]
    assert_one_clear_line(partita("run", graph, *over), 2, "--out", "is what --cluster names")


@pytest.mark.usefixtures("untouched")
def test_a_folder_that_cannot_be_made_is_refused_first(partita: CommandLine, graph: Path, tmp_path: Path) -> None:
    """A file is there, or on the way."""
    (tmp_path / "file").write_text("mine")
    assert_one_clear_line(partita("partition", graph, "--out", tmp_path / "file"), 2, "--out", "is a file")
    inner = tmp_path / "file" / "a" / "b"
    assert_one_clear_line(
        partita("partition", graph, "--out", inner), 2, "--out", "cannot be made", "'file' is a file"[1:5]
    )


def test_what_is_no_plain_file_may_be_written(partita: CommandLine, graph: Path, x: str) -> None:
    """Both outputs may be written to the null device."""
    flags = ["--out", os.devnull, "--trace", os.devnull]
    assert "1 value fetched" in partita.done("run", graph, "--feed", x, "--devices", "cpu:2", "--fetch", "y", *flags)


def test_a_tensor_may_be_called_like_an_argument_of_numpy(partita: CommandLine, tmp_path: Path) -> None:
    """The archive has it under its own name."""
    from partita.graph.builder import GraphBuilder

    b = GraphBuilder()
    for name in ("file", "allow_pickle", "args", "kwds"):
        b.constant(np.array([1, 2], np.float32), name=name)
    (tmp_path / "g.pb").write_bytes(b.SerializeToString())
    partita.done("run", tmp_path / "g.pb", "--out", tmp_path / "out.npz")
    with np.load(tmp_path / "out.npz") as out:
        assert sorted(out.files) == ["allow_pickle", "args", "file", "kwds"]
        assert out["file"].tolist() == [1, 2]
