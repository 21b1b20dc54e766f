"""Fixtures of the command line tests."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.scenarios.command_line import CommandLine, Terminal, affine

X = np.array([[1, 2, 3], [4, 5, 6]], np.float32)


@pytest.fixture
def partita(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> CommandLine:
    """The command line without PARTITA_DEBUG, and without progress on a busy machine."""
    monkeypatch.delenv("PARTITA_DEBUG", raising=False)
    monkeypatch.setattr("partita.scenarios.progress.PATIENCE_S", 3600.0)
    return CommandLine(capsys)


@pytest.fixture
def terminal(partita: CommandLine, monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """The command line on a terminal."""
    return Terminal(partita, monkeypatch)


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    """The file of y = x @ w + 1 on two devices."""
    return affine().write(tmp_path)


@pytest.fixture
def x(tmp_path: Path) -> str:
    """The value of a flag that feeds x."""
    np.save(tmp_path / "x.npy", X)
    return f"x={tmp_path / 'x.npy'}"
