"""How a process of `partita` ends after Ctrl-C, at its start too, and after SIGTERM, also where SIGINT is ignored."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

RESET = "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
"""begins the script of a child: SIGINT may be ignored in the suite, and children inherit that"""
RAISES = """
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r} and name not in sys.modules:
            sys.meta_path.remove(self)
            try:
                signal.raise_signal(signal.SIGINT)
            except KeyboardInterrupt:
                if {lost}: raise ImportError(name + " failed to import") from None
                raise
sys.meta_path.insert(0, Finder())
"""
MAIN = "from partita.__main__ import main\nmain()"
MODULES = (
    *("numpy", "numpy.exceptions", "numpy._core.multiarray", "numpy._core._multiarray_umath", "numpy.linalg"),
    *(
        "google.protobuf.message",
        "ml_dtypes",
        "rich.console",
        "partita.errors",
        "partita.graph",
        "partita.devices.timing",
    ),
)
ENDED = "partita: error: interrupted"


def ended(script: str, *words: object) -> subprocess.CompletedProcess[str]:
    """A child process that has run a script with these arguments of `partita`."""
    call = [sys.executable, "-c", RESET + script, *map(str, words)]
    return subprocess.run(call, capture_output=True, text=True, check=False)


def test_ctrl_c_ends_the_process_with_130(graph: Path, x: str) -> None:
    """One SIGINT in the tenth of a million steps over two devices: one line on stderr, and the exit code of a shell."""
    script = (
        "from partita.actors.sessions.steps import Steps; from partita.__main__ import main\n"
        "run = Steps.run\n"
        "async def interrupted(self, prepared, fed, number, *rest):\n"
        "    if number == 10: signal.raise_signal(signal.SIGINT)\n"
        "    return await run(self, prepared, fed, number, *rest)\n"
        "Steps.run = interrupted; main()"
    )
    done = ended(script, "run", graph, "--feed", x, "--fetch", "y", "--devices", "cpu:2", "--steps", "1000000")
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr.splitlines()[-1] == ENDED


@pytest.mark.parametrize("lost", [False, True], ids=["raised", "lost"])
@pytest.mark.parametrize("module", MODULES)
def test_ctrl_c_while_a_module_is_imported(module: str, lost: bool, graph: Path) -> None:
    """130, also where what imports it turns the KeyboardInterrupt into an ImportError, as extension modules do."""
    done = ended(RAISES.format(module=module, lost=lost) + MAIN, "simulate", graph, "--shape", "x=2,3")
    assert (done.returncode, done.stdout) == (130, ""), done.stderr
    assert done.stderr.splitlines()[-1] == ENDED


@pytest.mark.parametrize("module", ["numpy", "partita.actors.sessions.steps"])
def test_ctrl_c_in_a_destructor(module: str, graph: Path, x: str) -> None:
    """Python would print its traceback and go on; it ends the million steps all the same, in one line."""
    script = (
        "class Interrupts:\n    def __del__(self): signal.raise_signal(signal.SIGINT)\n"
        "class Finder:\n    def find_spec(self, name, path=None, target=None):\n"
        f"        if name == {module!r}: sys.meta_path.remove(self); Interrupts()\n"
        "sys.meta_path.insert(0, Finder())\n"
    )
    done = ended(script + MAIN, "run", graph, "--feed", x, "--devices", "cpu:2", "--steps", "1000000")
    assert (done.returncode, done.stdout, done.stderr.lstrip("\n")) == (130, "", f"{ENDED}\n")


def test_an_import_error_alone_is_no_interrupt(graph: Path) -> None:
    """A package that is broken is an error, exit code 1."""
    script = RAISES.format(module="simpy", lost=True).replace(
        "signal.raise_signal(signal.SIGINT)", "raise KeyboardInterrupt"
    )
    done = ended(script + MAIN, "simulate", graph, "--shape", "x=2,3")
    assert (done.returncode, done.stderr.splitlines()[-1]) == (1, "partita: error: ImportError: simpy failed to import")


@pytest.mark.parametrize("module", ["scipy.special", "partita.devices.kernels.elementwise"])
def test_ctrl_c_while_a_running_loop_imports(module: str, graph: Path, x: str) -> None:
    """What trio's handler raises is noted too: modules that a command imports late, in the loop."""
    late = (
        "import partita.scenarios.commands.run as r\nrun = r.run\n"
        f"async def late(*a):\n    import {module}\n    await run(*a)\nr.run = late\n"
    )
    script = late + f"sys.modules.pop({module!r}, None)\n" + RAISES.format(module=module, lost=True) + MAIN
    done = ended(script, "run", graph, "--feed", x, "--devices", "cpu:2")
    assert (done.returncode, done.stdout) == (130, ""), done.stderr
    assert done.stderr.splitlines()[-1] == ENDED


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_background_job_ignores_ctrl_c_and_ends_by_sigterm(number: signal.Signals, graph: Path, x: str) -> None:
    """Started with SIGINT ignored, as `sh -c 'partita ... &'` starts it; a shell shows SIGTERM's end as 143."""
    script = (
        "signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "from partita.actors.sessions.steps import Steps; from partita.__main__ import main\n"
        "run = Steps.run\n"
        "async def signalled(self, prepared, fed, number, *rest):\n"
        f"    if number == 10: signal.raise_signal({int(number)})\n"
        "    return await run(self, prepared, fed, number, *rest)\n"
        "Steps.run = signalled; main()"
    )
    steps = "1000000" if number == signal.SIGTERM else "20"
    done = ended(script, "run", graph, "--feed", x, "--fetch", "y", "--devices", "cpu:2", "--steps", steps)
    if number == signal.SIGTERM:
        assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGTERM, "", "")
    else:
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.startswith("20 steps")


SUITES = (
    "tests/laws/test_law7_interrupts.py",
    "tests/actors/sessions/bridges/test_blocking.py",
    "tests/scenarios/commands/test_cli_signals.py",
    "tests/test_main.py",
)
HANGS_S = 900  # far more than the suites take on a busy machine


@pytest.mark.slow
@pytest.mark.skipif("PARTITA_INSIDE" in os.environ, reason="it would start itself")
def test_the_tests_of_ctrl_c_pass_where_it_is_ignored() -> None:
    """As in a job that a script starts in the background: none hangs, and none depends on the handler it finds.

    One that hangs fails by name: the tests are listed as they begin.
    """
    chosen = "-v -p no:xdist -p no:cacheprovider -m 'not slow' -k 'ctrl_c or interrupt or host'"
    call = f"trap '' INT; exec {sys.executable} -m pytest {chosen} "
    environment = os.environ | {"PARTITA_INSIDE": "1"}
    checkout = Path(__file__).parents[3]
    suite = ["sh", "-c", call + " ".join(SUITES)]
    with tempfile.TemporaryFile("w+") as listed:
        code: int | None = None
        try:
            code = subprocess.run(
                suite, cwd=checkout, env=environment, stdout=listed, timeout=HANGS_S, check=False
            ).returncode
        except subprocess.TimeoutExpired:
            pass
        listed.seek(0)
        assert code == 0, listed.read()[-2000:]
