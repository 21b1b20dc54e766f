"""Workers with other versions, or without Partita, are refused by name before anything is installed in them."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import platform
from collections.abc import Mapping, Sequence

import pytest
import trio
from hypothesis import given, strategies as st

from partita.actors.sessions.processes.probing import check_workers, probe
from partita.actors.sessions.processes.versions import UNKNOWN, check, process_id, versions_here
from partita.errors import FailedPreconditionError

PYTHON = platform.python_version()
HERE = dict(versions_here())


class Workers:
    """What `Client.run` answers for workers with these packages; an exception where there is none."""

    def __init__(self, **packages: Mapping[str, str]) -> None:
        self._packages = packages  # by worker: versions by package, "checkout" without metadata, and of "python"

    async def __call__(
        self, function: object, *arguments: str, workers: Sequence[str] | None, on_error: str
    ) -> Mapping[str, object]:
        assert on_error == "return"
        return {name: self._answer(name, function, *arguments) for name in workers or self._packages}

    def _answer(self, worker: str, function: object, *names: str) -> object:
        packages = self._packages[worker]
        if function is platform.python_version:
            return packages.get("python", PYTHON)
        (name,) = names
        if function is importlib.util.find_spec:
            return object() if name in packages else None
        assert function is importlib.metadata.version
        version = packages.get(name, "checkout")
        return version if version != "checkout" else importlib.metadata.PackageNotFoundError(name)


SAME = {"partita": HERE["partita"], "numpy": HERE["numpy"], "ml_dtypes": HERE["ml_dtypes"]}


async def test_equal_workers_pass() -> None:
    """Also with another patch of Python."""
    await check_workers(Workers(one=SAME, two={**SAME, "python": PYTHON.rpartition(".")[0] + ".99"}))


@pytest.mark.parametrize(
    ("packages", "text"),
    [
        ({**SAME, "numpy": "1.0"}, f"the worker bad has numpy 1.0, this process {HERE['numpy']}"),
        ({**SAME, "python": "3.5.1"}, f"the worker bad has Python 3.5, this process {HERE['python']}"),
        ({**SAME, "partita": "9.9"}, f"the worker bad has Partita 9.9, this process {HERE['partita']}"),
        ({**SAME, "partita": "checkout"}, f"the worker bad has Partita {UNKNOWN}, this process {HERE['partita']}"),
        (
            {"numpy": "1.0", "ml_dtypes": "0.1"},
            f"the worker bad has no Partita: install partita {HERE['partita']} in the environment of the workers",
        ),
        (
            {"partita": HERE["partita"], "numpy": "1.0"},
            f"the worker bad has numpy 1.0, this process {HERE['numpy']}; ml_dtypes not installed, this process "
            f"{HERE['ml_dtypes']}",
        ),
    ],
)
async def test_another_worker_is_refused_by_name(packages: Mapping[str, str], text: str) -> None:
    """The error names the worker, what differs, and both versions."""
    with pytest.raises(FailedPreconditionError) as error:
        await check_workers(Workers(alright=SAME, bad=packages))
    assert text in error.value.message


async def test_a_worker_that_leaves_meanwhile_is_left_out() -> None:
    """It answers with an error of the connection, or not at all."""

    class Leaving(Workers):
        def _answer(self, worker: str, function: object, *names: str) -> object:
            return OSError("gone") if worker == "leaves" else super()._answer(worker, function, *names)

    assert list(await probe(Leaving(stays=SAME, leaves=SAME))) == ["stays"]


async def test_named_workers_alone_are_asked() -> None:
    """A worker that joins later."""
    await check_workers(Workers(one={}, new=SAME), ["new"])


@given(st.dictionaries(st.sampled_from(sorted(HERE)), st.sampled_from(["1", "2"]), min_size=1))
def test_every_difference_is_named(theirs: dict[str, str]) -> None:
    """All that both sides name is compared, and all that differs is in the error."""
    ours = {**HERE, **dict.fromkeys(theirs, "1")}
    wrong = [name for name, version in theirs.items() if version != "1"]
    if not wrong:
        check("w", theirs, ours)
        return
    with pytest.raises(FailedPreconditionError) as error:
        check("w", theirs, ours)
    assert error.value.message.count("2, this process 1") == len(wrong)


async def test_a_process_has_one_id() -> None:
    """The same in all threads."""
    assert process_id() == await trio.to_thread.run_sync(process_id)
    assert len(process_id()) == 32
