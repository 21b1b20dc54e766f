"""Settings of all tests: hypothesis profiles, and a summary at the end of a run.

The summary says per suite and family of the corpus how many cases passed, and by reason which tests did not run, so
that a suite which ran less is noticed.
"""

from __future__ import annotations

import gc
import os
import signal
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from inspect import iscoroutinefunction
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

from partita.graph.checking import checking
from tests.goldens import write_texts
from tests.hangs import JumpingClock, never_hangs

if TYPE_CHECKING:
    from distributed import LocalCluster

_DESELECTED = pytest.StashKey[set[str]]()

# No deadline: on a shared machine a slow example says nothing. The same examples each time, so that a failure repeats.
settings.register_profile(
    "default", deadline=None, derandomize=True, max_examples=50, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("thorough", parent=settings.get_profile("default"), derandomize=False, max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """No async test waits for ever, not even for one example of a law."""
    for item in items:
        if isinstance(item, pytest.Function):
            law = getattr(item.obj, "hypothesis", None)
            if law is not None and iscoroutinefunction(law.inner_test):
                law.inner_test = never_hangs(law.inner_test)
            elif iscoroutinefunction(item.obj):
                item.obj = never_hangs(item.obj)


@pytest.fixture(autouse=True, scope="session")
def _rules_of_stages() -> Iterator[None]:
    """Every graph that a test makes is checked against the rules of its stage."""
    with checking():
        yield


@pytest.fixture(scope="module")
def ctrl_c() -> Iterator[None]:
    """Python's handler of SIGINT: in a suite that a script started in the background the signal is ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="module")
def quick_collections() -> Iterator[None]:
    """The garbage collector looks at what tests of this module make, and not at the heap of the whole run."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture(scope="session")
def dask() -> None:
    """Skips the test where dask is missing."""
    pytest.importorskip("distributed", reason="distributed is not installed: pip install '.[dask]'")


@pytest.fixture(scope="module")
def cluster(dask: None) -> Iterator[LocalCluster]:
    """Two worker processes of dask, which the tests of a module share; one that dies is started again."""
    from partita.actors.sessions.processes.local_cluster import start_local_cluster

    with start_local_cluster(2) as started:
        yield started


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str, str], Path]:
    """Installs a package of one module for the length of a test, as pip does: install(module, source, entry points).

    Returns the folder that is on the path.
    """

    def write(module: str, source: str, entry_points: str) -> Path:
        (tmp_path / f"{module}.py").write_text(source)
        info = tmp_path / f"{module}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(entry_points)
        monkeypatch.syspath_prepend(str(tmp_path))
        return tmp_path

    return write


@pytest.fixture
def autojump_clock() -> JumpingClock:
    """The fixture of pytest-trio, with a clock that waits for threads."""
    return JumpingClock()


def pytest_deselected(items: list[pytest.Item]) -> None:
    """Records the tests that the command line left out; xdist does not report them."""
    for item in items:
        item.config.stash.setdefault(_DESELECTED, set()).add(item.nodeid)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A worker of xdist sends its records; golden texts are written if the environment says so."""
    write_texts()
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["deselected"] = sorted(session.config.stash.get(_DESELECTED, ()))


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:  # Any: xdist may not be there
    """Receives the records of a worker; all workers collect the same tests."""
    node.config.stash.setdefault(_DESELECTED, set()).update(getattr(node, "workeroutput", {}).get("deselected", ()))


def _left_out(terminalreporter: pytest.TerminalReporter) -> dict[str, list[str]]:
    """The names of the tests that did not run, by reason."""
    names: dict[str, list[str]] = defaultdict(list)
    for report in terminalreporter.stats.get("skipped", []):
        _, _, reason = report.longrepr
        names[reason.removeprefix("Skipped: ")].append(report.nodeid)
    config = terminalreporter.config
    if not config.option.keyword:  # a run of selected tests needs no list of the others
        for name in sorted(config.stash.get(_DESELECTED, ())):
            names[f"left out by -m {config.option.markexpr!r}"].append(name)
    return names


def _accounts(terminalreporter: pytest.TerminalReporter, outcome: str) -> set[str]:
    reports = [report for report in terminalreporter.stats.get(outcome, []) if getattr(report, "when", "") == "call"]
    return {str(value) for report in reports for key, value in report.user_properties if key == "conformance"}


def _cases_of_ops(terminalreporter: pytest.TerminalReporter) -> dict[str, Counter[str]]:
    """Per suite, the number of passed cases with each op."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for report in terminalreporter.stats.get("passed", []):
        for key, value in report.user_properties if getattr(report, "when", "") == "call" else ():
            if key == "ops":
                suite, ops = str(value).split(":", 1)
                counts[suite].update(ops.split())
    return counts


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Prints how many tests did not run, why, and which, and what ran of the corpus."""
    left_out = _left_out(terminalreporter)
    if left_out:
        terminalreporter.section("tests that did not run, and why")
    for reason, names in sorted(left_out.items()):
        terminalreporter.line(f"{len(names)}: {reason}")
        for name in names:
            terminalreporter.line(f"  {name}")
    _conformance_summary(terminalreporter)


def _conformance_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Per suite and family how many cases passed of how many the corpus has, and in how many each op was."""
    failed = _accounts(terminalreporter, "failed") | _accounts(terminalreporter, "xfailed")
    passed: dict[tuple[str, str, str], int] = defaultdict(int)
    for account in failed | _accounts(terminalreporter, "passed"):
        suite, family, size, _ = account.split(":", 3)
        passed[suite, family, size] += account not in failed
    suites: dict[str, list[str]] = defaultdict(list)
    for (suite, family, size), count in sorted(passed.items()):
        suites[suite].append(f"{family} {count}/{size}")
    if suites:
        terminalreporter.section("conformance: cases that passed, of those the corpus has")
    for suite, families in suites.items():
        terminalreporter.line(f"{suite}: {', '.join(families)}")
    for suite, counts in sorted(_cases_of_ops(terminalreporter).items()):
        listed = ", ".join(f"{op} {count}" for op, count in sorted(counts.items()))
        terminalreporter.line(f"{suite}, cases of each of {len(counts)} ops:")
        for line in wrap(listed, 118, initial_indent="  ", subsequent_indent="  "):
            terminalreporter.line(line)
