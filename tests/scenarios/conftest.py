"""Fixtures of the command line tests."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from partita.scenarios.executors.dask_cluster import DaskExecutor, dask_cluster
from tests.scenarios.command_line import CommandLine, Terminal, affine

NEEDS_DASK = "distributed is not installed: pip install '.[dask]'"
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


@pytest.fixture(scope="session")
def _dask_client() -> Iterator[Any]:  # Any: dask is an extra
    """The client of a cluster with two processes, for all tests that need one."""
    if find_spec("distributed") is None:
        pytest.skip(NEEDS_DASK)
    with dask_cluster(workers=2) as executor:
        yield executor.client


@pytest.fixture
def local_dask(_dask_client: Any) -> DaskExecutor:  # Any: likewise
    """That cluster, when both processes are there: a test may have ended one."""
    _dask_client.wait_for_workers(2)
    return DaskExecutor(_dask_client)
