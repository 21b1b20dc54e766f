"""The README: two commands, on files that exist, on the first screen, which CI runs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

CHECKOUT = Path(__file__).parents[1]
README = (CHECKOUT / "README.md").read_text()
FIRST_SCREEN = 40
EXTRACTION = re.compile(r"^second_command=\$\((awk .*)\)$", re.MULTILINE)


def commands() -> list[str]:
    """The shell blocks of the README's first screen."""
    return re.findall(r"^```sh\n(.*?)\n```$", "\n".join(README.splitlines()[:FIRST_SCREEN]), re.MULTILINE | re.DOTALL)


def test_two_commands_set_everything_up() -> None:
    """The first installs and runs a shipped file; the second installs the test extra and runs the tests."""
    first, second = commands()
    assert "pip install" in first
    assert "bin/partita " in first
    shipped = [word for word in first.split() if "/" in word and Path(word).suffix]
    assert shipped
    assert all((CHECKOUT / word).is_file() for word in shipped), shipped
    assert '".[test]"' in second
    assert "pytest" in second


def test_ci_runs_the_second_command_word_for_word() -> None:
    """The command that .ci/run extracts from the README is the second block."""
    extraction = EXTRACTION.search((CHECKOUT / ".ci" / "run").read_text())
    assert extraction is not None
    done = subprocess.run(["sh", "-c", extraction[1]], cwd=CHECKOUT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == commands()[1]


# What stands for Python in a checkout whose tests are "a" and "b", and "c" where a file lies beside it.
PYTHON = """#!/bin/sh
case "$*" in
*-m\\ pip*) echo "installed $*";;
*--collect-only*) echo t.py::b; echo t.py::a; [ ! -e ../beside ] || echo t.py::c;;
*) for last; do :; done; cat "${last#@}"; echo beside: $(ls ..);;
esac
"""
# The end of what a run of the tests prints.
SUMMARY = """=== tests that did not run, and why ===
1: no browser
  t.py::skipped[a b]
1: no reader
  t.py
=== 1 passed, 2 skipped ===
"""


def test_ci_tests_a_clone_with_nothing_beside_it(tmp_path: Path) -> None:
    """Skipped tests run again with the extras; of the tests in the checkout, only those run that neighbours add."""
    checkout = tmp_path / "checkout"
    (checkout / ".ci").mkdir(parents=True)
    (tmp_path / "beside").touch()
    shutil.copy(CHECKOUT / ".ci" / "run", checkout / ".ci")
    (checkout / "python").write_text(PYTHON)
    (checkout / "Makefile").write_text("format-check lint types docs:\n\t@echo $@\n")
    (checkout / "summary").write_text(SUMMARY)
    (tmp_path / "chromium").write_text("#!/bin/sh\n")
    (tmp_path / "chromium").chmod(0o755)
    second = "mkdir -p .venv/bin && install python .venv/bin/ && echo in the clone: $(ls ..) && cat summary"
    (checkout / "README.md").write_text(f"```sh\nfalse\n```\n```sh\n{second}\n```\n")
    git = ["git", "-c", "user.name=x", "-c", "user.email=x@example.org"]
    for command in (["init", "--quiet"], ["add", "--all"], ["commit", "--quiet", "--message=x"]):
        subprocess.run([*git, *command], cwd=checkout, check=True)
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"  # with a Chromium: the test installs none
    run = [checkout / ".ci" / "run"]
    done = subprocess.run(run, env={**os.environ, "PATH": path}, capture_output=True, text=True, check=True)
    said = [line for line in done.stdout.splitlines() if not line.startswith("installed ")]
    assert said[1:] == [
        "in the clone: partita said",
        *SUMMARY.splitlines(),
        "format-check",
        "lint",
        "types",
        "docs",
        "+ 2 tests that were skipped without the extras",
        "t.py::skipped[a b]",
        "t.py",
        "beside: in_the_clone partita said skipped",
        "+ 1 tests that the files beside the checkout add",
        "t.py::c",
        "beside: beside checkout chromium",
    ]


def test_links_lead_somewhere() -> None:
    """Every relative link of the README and of the documents names an existing file or folder."""
    pages = [CHECKOUT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]
    broken = [
        f"{page.name}: {target}"
        for page in [*pages, *(CHECKOUT / "docs").rglob("*.md")]
        for target in re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", page.read_text())
        if not (page.parent / target).exists()
    ]
    assert not broken, "\n".join(broken)
