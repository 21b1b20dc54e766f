"""On a terminal no line is wider than it; elsewhere no line is wrapped."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import termios
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from rich.cells import cell_len

from partita.graph import GraphBuilder
from partita.scenarios.cli import cli
from tests.conformance.corpus import COMMITTED
from tests.scenarios.command_line import COLOURS, CommandLine, Terminal
from tests.scenarios.commands.planning.plans import FEW, SMALL

WIDTHS = (40, 60, 80, 100, 120)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """Long names, long shapes, forty ends, two GPUs."""
    b = GraphBuilder()
    x = b.placeholder("a_placeholder_with_a_long_name", "float32", (64, 256))
    for k in range(40):
        device = f"/device:GPU:{k % 2}"
        product = b.op(
            "MatMul", x, x, name=f"a_long_scope_{k}/another_long_scope/product", transpose_b=True, device=device
        )
        b.op("Relu", product, name=f"a_long_scope_{k}/another_long_scope/relu", device=device)
    path = tmp_path / "model.pb"
    path.write_bytes(b.graph_def().SerializeToString())
    np.save(tmp_path / "x.npy", np.zeros((64, 256), np.float32))
    return path


def calls(model: Path) -> Iterator[tuple[str, ...]]:
    """Each command with what it prints most of, their helps, and an error of each."""
    x, folder = f"a_placeholder_with_a_long_name={model.parent / 'x.npy'}", model.parent
    node = "a_long_scope_0/another_long_scope/product"
    for command in ("run", "simulate"):
        yield (command, str(model), "--feed", x)
    yield ("explain", str(model), node, "--feed", x)
    yield ("partition", str(model), "--feed", x, "--out", str(folder / "parts"))
    for stage in ("raw", "placed", "partitioned", "plan"):
        yield ("show", str(model), "--feed", x, "--stage", stage)
    yield from (("inspect", str(path)) for path in (model, COMMITTED / "saved_model" / "keras_mlp" / "model"))
    yield from (
        ("scenario",),
        ("scenario", "cnn_two_gpus"),
        ("plan", *SMALL, *FEW, "--gpus", "A100-80GB:8", "--global-batch", "8", "--what-if", "peak=2x"),
        ("devices",),
        ("devices", "H100-SXM"),
        ("devices", "NVLink4"),
    )
    yield from (("ops",), ("ops", "MatMul"), ("ops", "Conv2D"))
    yield from (("validate", "--fit", str(folder)), ("calibrate", str(model), "--device", "L4", "--write", str(folder)))
    yield from ((), ("--help",), *((command, "--help") for command in cli.commands))
    yield from ((command, "a_word_that_is_no_file_and_no_name_" * 4) for command in cli.commands)


@pytest.mark.parametrize("width", WIDTHS)
def test_no_line_is_wider_than_the_terminal(width: int, terminal: Terminal, model: Path) -> None:
    """Every command, help and error."""
    commands = set[str]()
    for call in calls(model):
        commands.update(call[:1])
        result = terminal(width, *call)
        lines = (result.out + result.err).splitlines()
        assert lines
        wide = [line for line in lines if cell_len(line) > width]
        assert not wide, (call, wide)
    assert set(cli.commands) <= commands


@pytest.mark.parametrize("width", WIDTHS)
def test_wrapping_loses_no_word(width: int, terminal: Terminal, partita: CommandLine, model: Path) -> None:
    """What a terminal shows is what a pipe gets, but for blanks and line ends."""
    for call in (("show", model, "--stage", "raw"), ("devices", "H100-SXM"), ("scenario",), ("ops", "Conv2D")):
        assert "".join(terminal(width, *call).out.split()) == "".join(partita.done(*call).split())


def test_nothing_is_wrapped_in_a_pipe(partita: CommandLine, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table keeps a row on a line, a text its lines, an error its one line, however narrow COLUMNS is."""
    texts = []
    for width in (40, 120):
        monkeypatch.setenv("COLUMNS", str(width))
        texts.append(
            [
                partita(*call).out
                for call in calls(model)
                if call[:1] in (("show",), ("inspect",), ("devices",)) and "--help" not in call
            ]
        )
        assert len(partita("inspect", "no file " * 30).err.splitlines()) == 1
    assert texts[0] == texts[1]
    assert max(len(line) for text in texts[0] for line in text.splitlines()) > 120


def test_a_real_terminal_is_asked_for_its_width(model: Path) -> None:
    """Without COLUMNS, a pseudo-terminal of 60 columns."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (30, 60))
    environment = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "NO_COLOR", "FORCE_COLOR")} | {
        "TERM": "xterm"
    }
    call = [sys.executable, "-m", "partita", "inspect", str(model)]
    child = subprocess.Popen(call, stdin=theirs, stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    printed = b""
    try:
        while chunk := os.read(ours, 65536):
            printed += chunk
    except OSError:  # how Linux says that the other end is closed
        pass
    os.close(ours)
    assert child.wait() == 0
    lines = COLOURS.sub("", printed.decode()).splitlines()
    assert max(map(cell_len, lines)) <= 60
    assert [line for line in lines if line.startswith("    a_long_scope_")]
