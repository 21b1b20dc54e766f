"""The process of `partita` under Ctrl-C at every instant of its start: exit code 130 and one line, no traceback.

A driver forks a child for each instant, so that the interpreter starts once. In a child an audit hook raises SIGINT at
the n-th import; the child then starts the command line as `python -m partita` or as the installed script does.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

CHECKOUT = Path(__file__).parents[1]
INTERRUPTED = "partita: error: interrupted\n"
DRIVER = """
import gc, importlib, json, os, runpy, signal, sys, tempfile
how, first, step, *words = sys.argv[1:]
signal.signal(signal.SIGINT, signal.default_int_handler)

def interrupt_at(number):
    count = 0
    def hook(event, _):
        nonlocal count
        if event == "import":
            count += 1
            if count == number:
                signal.raise_signal(signal.SIGINT)
    sys.addaudithook(hook)

def command():
    if how == "module":
        runpy.run_module("partita", run_name="__main__", alter_sys=True)
    else:
        module, name = how.split(":")
        getattr(importlib.import_module(module), name)()

import partita, importlib.machinery  # so that the first import is one of the package's own
sys.argv = ["partita", *words]
number, ends = int(first), []
while True:
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        child = os.fork()
        if not child:
            os.dup2(out.fileno(), 1)
            os.dup2(err.fileno(), 2)
            interrupt_at(number)
            command()
        _, status = os.waitpid(child, 0)
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode())
        ends.append([number, os.waitstatus_to_exitcode(status), *texts])
    if ends[-1][1] != 130:
        break
    number += int(step)
print(json.dumps(ends))
"""


def ends_of(how: str, first: int, step: int, *words: str) -> list[tuple[int, int, str, str]]:
    """Instant, exit code, stdout and stderr of each child, until one was not interrupted."""
    call = [sys.executable, "-c", DRIVER, how, str(first), str(step), *words]
    done = subprocess.run(call, capture_output=True, text=True, check=True)
    ends: list[tuple[int, int, str, str]] = json.loads(done.stdout)
    return ends


def script() -> str:
    """What the installed command calls, "module:function"."""
    settings: dict[str, Any] = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())
    return str(settings["project"]["scripts"]["partita"])


@pytest.mark.parametrize("how", ["module", script()])
def test_ctrl_c_at_every_import_of_the_start(how: str) -> None:
    """Of `--version`: every import until the command has run, which the last child does undisturbed."""
    *interrupted, last = ends_of(how, 1, 1, "--version")
    assert len(interrupted) > 50
    assert {(out, err.lstrip("\n")) for _, _, out, err in interrupted} <= {("", INTERRUPTED), (last[2], INTERRUPTED)}
    assert (last[1], last[3]) == (0, "")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("step", "words"),
    [(67, ["simulate", "--json"]), (83, ["run"]), (61, ["inspect", "--json"])],
    ids=["simulate", "run", "inspect"],
)
def test_ctrl_c_at_many_imports_of_a_command(step: int, words: list[str]) -> None:
    """Of what its modules import, late ones in the event loop too; with --json programs get an object."""
    command, *flags = words
    graph = CHECKOUT / "scenarios" / "examples" / "mlp.pb"
    *interrupted, last = ends_of("module", 1, step, command, str(graph), *flags)
    assert len(interrupted) >= 8
    for _, _, out, err in interrupted:
        assert err.lstrip("\n") == INTERRUPTED
        assert not out or json.loads(out)["error"]["exit_code"] == 130
    assert (last[1], last[3]) == (0, "")


def test_ctrl_c_after_the_command_prints_no_traceback() -> None:
    """What is registered for the end of the process is interrupted: the signal ends it, unless it is ignored."""
    late = "import atexit, signal; from partita.__main__ import main; signal.signal(signal.SIGINT, {handler})\n"
    late += "atexit.register(signal.raise_signal, signal.SIGINT); main()"
    for handler, code in {"signal.default_int_handler": -signal.SIGINT, "signal.SIG_IGN": 0}.items():
        call = [sys.executable, "-c", late.format(handler=handler), "--version"]
        done = subprocess.run(call, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (code, ""), handler
