"""The README: two commands, on files that exist, on the first screen, which CI runs."""

from __future__ import annotations

import re
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
