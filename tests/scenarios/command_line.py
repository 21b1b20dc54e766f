"""Runs `partita` inside the test process, on small graphs that tests write."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from partita.graph.attrs import encode
from partita.graph.dtypes import DataType
from partita.graph.ops.registry import lookup_op
from partita.graph.protos import GraphDef
from partita.scenarios.cli import main

COLOURS = re.compile(r"\x1b\[[0-9;]*m")
"""what a terminal gets for a heading"""
CPU = "/job:localhost/replica:0/task:0/device:CPU:"


@dataclass(frozen=True)
class Result:
    """How a call ended, and what it printed."""

    code: int
    out: str
    err: str


class CommandLine:
    """Calls `partita`; arguments may be of any type whose text is the argument."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: object) -> Result:
        """Runs one command."""
        self._capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        out, err = self._capsys.readouterr()
        return Result(code, out, err)

    def done(self, *arguments: object) -> str:
        """Runs a command that must succeed; returns what it printed."""
        result = self(*arguments)
        assert (result.code, result.err) == (0, "")
        return result.out


class Terminal:
    """Calls `partita` with consoles that say that they are a terminal of some columns."""

    def __init__(self, partita: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
        self._partita = partita
        self._monkeypatch = monkeypatch
        monkeypatch.setenv("TERM", "xterm")

    def __call__(self, width: int, *arguments: object) -> Result:
        """Runs one command; what it prints is without colours."""
        result = self.raw(width, *arguments)
        return Result(result.code, COLOURS.sub("", result.out), COLOURS.sub("", result.err))

    def raw(self, width: int, *arguments: object) -> Result:
        """Runs one command; what it prints has the colours."""
        self._monkeypatch.setenv("COLUMNS", str(width))
        with self._monkeypatch.context() as patched:
            for stream in (sys.stdout, sys.stderr):
                patched.setattr(stream, "isatty", lambda: True)
            return self._partita(*arguments)


def assert_one_clear_line(result: Result, code: int, *words: str) -> None:
    """The command failed with that code, printed no result, and one line of error that has all the words."""
    assert result.code == code, result.err
    lines = result.err.splitlines()
    assert len(lines) == 1, result.err
    assert lines[0].startswith("partita: error: ")
    assert [word for word in words if word not in lines[0]] == [], lines[0]


class GraphFile:
    """Builds a GraphDef and writes it to a file."""

    def __init__(self, producer: int = 2474) -> None:
        self.graph_def = GraphDef()
        self.graph_def.versions.producer = producer

    def add(
        self, name: str, op: str, inputs: Sequence[str] = (), device: str = "", **attrs: Any
    ) -> None:  # Any: by attr
        """Adds a node; a device is the number of a CPU or a full name."""
        node = self.graph_def.node.add(
            name=name, op=op, input=inputs, device=f"{CPU}{device}" if device.isdigit() else device
        )
        signature = lookup_op(op)
        for key, value in attrs.items():
            node.attr[key].CopyFrom(encode(value, signature.attrs[key].type))

    def write(self, folder: Path, name: str = "graph.pb") -> Path:
        """Writes the file and returns its path."""
        path = folder / name
        path.write_bytes(self.graph_def.SerializeToString(deterministic=True))
        return path


def affine() -> GraphFile:
    """y = x @ w + 1, with x float [?,3] fed and w a constant; y is on CPU:1, the rest on CPU:0."""
    graph = GraphFile()
    graph.add("x", "Placeholder", device="0", dtype=DataType.FLOAT, shape=(None, 3))
    graph.add("w", "Const", device="0", dtype=DataType.FLOAT, value=np.arange(6, dtype=np.float32).reshape(3, 2))
    graph.add("one", "Const", device="1", dtype=DataType.FLOAT, value=np.float32(1))
    graph.add("xw", "MatMul", ["x", "w"], device="0", T=DataType.FLOAT)
    graph.add("y", "AddV2", ["xw", "one"], device="1", T=DataType.FLOAT)
    return graph
