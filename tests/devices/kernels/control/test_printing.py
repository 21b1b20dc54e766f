"""What is printed, where, and how often; texts as TensorFlow 2.21 prints them."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from partita.devices.state import DeviceState
from partita.errors import InvalidArgumentError, NotFoundError
from tests.devices.kernels.harness import run, shapes
from tests.devices.kernels.random_arrays import texts


def text(value: bytes) -> np.ndarray:
    return np.array(value, object)


@pytest.mark.parametrize(
    ("value", "summarize", "expected"),
    [
        (np.array([[1, 2], [3, 4]], np.float32), 3, "[[1 2][3...]...]"),
        (np.arange(24).reshape(2, 3, 4), 5, "[[[0 1 2 3][4...]]...]"),
        (np.array([1, 2], np.int8), 0, "[...]"),
        (np.array([True, False]), 0, "[]"),
        (np.array([True, False]), 1, "[1...]"),
        (np.zeros((2, 0), np.float32), 3, "[]"),
        (np.array([[1j], [2]], np.complex64), -1, "[? ?]"),
        (np.array([1 / 3, 1e10, -np.nan], np.float64), 3, "[0.33333333333333331 10000000000 -nan]"),
        (np.array([1 / 3, 1e10, 0.1], np.float32), 3, "[0.333333343 1e+10 0.1]"),
        (np.array([1 / 3], ml_dtypes.bfloat16), 3, "[0.333984375]"),
        (texts(b"a", b"b c", "é\n\"x'\x00".encode()), 3, r"[a b c é\n\"x\'\000]"),
    ],
)
def test_the_first_elements(value: Any, summarize: int, expected: str, capsys: pytest.CaptureFixture[str]) -> None:
    """In one pair of brackets per axis, with dots where some were left out."""
    run("Print", np.int32(1), [value], summarize=summarize)
    assert capsys.readouterr().err == f"{expected}\n"


def test_the_input_comes_out_and_is_printed_in_the_first_steps(capsys: pytest.CaptureFixture[str]) -> None:
    """The count belongs to the node, so it goes on when another plan has the node."""
    state, x = DeviceState(), np.array([1, 2], np.float32)
    for _ in range(4):
        assert run("Print", x, [x, np.int32(7)], message="x: ", first_n=2, state=state) is x
    assert capsys.readouterr().err == "x: [1 2][7]\n" * 2
    run("Print", x, [], message="none", state=state)
    assert capsys.readouterr().err == "none\n"


def test_streams(capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    """Standard streams, the log at three levels, and the end of a file."""
    run("PrintV2", text(b"error"))
    run("PrintV2", text(b"out"), output_stream="stdout", end="|")
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("out|", "error\n")
    with caplog.at_level(logging.INFO):
        for level in ("info", "warning", "error"):
            run("PrintV2", text(level.encode()), output_stream=f"log({level})", end="")
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("INFO", "info"),
        ("WARNING", "warning"),
        ("ERROR", "error"),
    ]
    for line in (b"\xff", b"b"):
        run("PrintV2", text(line), output_stream=f"file://{tmp_path}/log")
    assert (tmp_path / "log").read_bytes() == b"\xff\nb\n"


def test_what_cannot_be_printed(tmp_path: Path) -> None:
    """TensorFlow 2.21's words."""
    streams = r"Valid streams are: stdout stderr log\(info\) log\(warning\) log\(error\)"
    with pytest.raises(InvalidArgumentError, match=f"Unknown output stream: bogus, {streams}"):
        run("PrintV2", text(b""), output_stream="bogus")
    with pytest.raises(InvalidArgumentError, match=r"Input is expected to be scalar, but got \[1\]"):
        run("PrintV2", texts(b"a"))
    with pytest.raises(NotFoundError, match="No such file or directory"):
        run("PrintV2", text(b""), output_stream=f"file://{tmp_path}/none/log")


def test_shapes() -> None:
    """Print gives its input; a text is a scalar."""
    assert shapes("Print", (2, None), []) == [(2, None)]
    with pytest.raises(InvalidArgumentError, match="Shape must be rank 0"):
        shapes("PrintV2", (1,))
