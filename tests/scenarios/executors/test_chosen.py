"""The flags of executors: what they name, and which exclude each other."""

from __future__ import annotations

import pytest

from partita.errors import InvalidArgumentError
from partita.scenarios import SerialExecutor, WorkerProcesses
from partita.scenarios.executor_options import NAMES
from partita.scenarios.executors.chosen import DASK, PROCESSES, SERIAL, ExecutorChoice


@pytest.mark.parametrize(
    ("choice", "name"),
    [
        (ExecutorChoice(), "serial"),
        (ExecutorChoice(usual=PROCESSES), "processes"),
        (ExecutorChoice(workers=2), "processes"),
        (ExecutorChoice(address="tcp://h:1"), "dask"),
        (ExecutorChoice("dask", workers=2), "dask"),
        (ExecutorChoice("serial", usual=PROCESSES), "serial"),
    ],
)
def test_a_flag_tells_the_executor(choice: ExecutorChoice, name: str) -> None:
    """Workers are processes and an address is one of dask, unless the executor is named."""
    assert choice.name == name
    choice.check()


@pytest.mark.parametrize(
    ("choice", "words"),
    [
        (ExecutorChoice("processes", address="tcp://h:1"), "--address is of a dask scheduler"),
        (ExecutorChoice("dask", workers=2, address="tcp://h:1"), "--workers starts workers"),
        (ExecutorChoice("serial", workers=2), "--executor serial"),
    ],
)
def test_flags_that_exclude_each_other(choice: ExecutorChoice, words: str) -> None:
    """Nothing is started."""
    with pytest.raises(InvalidArgumentError, match=words), choice.opened():
        pass


def test_an_executor_is_open_for_a_block() -> None:
    """Processes have ended after it."""
    with ExecutorChoice("serial").opened() as serial:
        assert isinstance(serial, SerialExecutor)
    with ExecutorChoice(workers=1).opened() as processes:
        assert isinstance(processes, WorkerProcesses)
        assert processes.submit(abs, -1).result() == 1
    assert processes.process_ids() == []


def test_the_help_lists_all_executors() -> None:
    """Their names stand in two modules, since help loads no executor."""
    assert NAMES == (SERIAL, PROCESSES, DASK)
    assert ExecutorChoice().first_given == ""
    assert ExecutorChoice(SERIAL, 1).first_given == "--executor"
