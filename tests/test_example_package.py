"""The example package of docs/ installs, is found by its entry points, and does what docs/extending.md says."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[1]
EXAMPLE = CHECKOUT / "docs" / "example_package"
TEXT = re.compile(r"^```text\n(.*?)^```\n", re.MULTILINE | re.DOTALL)

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which pip has installed a copy of the package."""
    folder = tmp_path_factory.mktemp("installed")
    source = tmp_path_factory.mktemp("source") / "acme"
    shutil.copytree(EXAMPLE, source)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation"]
    done = subprocess.run([*pip, "--target", str(folder), str(source)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


def run(installed: Path, code: str) -> str:
    """What a program prints that sees the package as any other installed one."""
    program = f"import site, sys; site.addsitedir({str(installed)!r})\n{code}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_example_prints_what_the_page_shows(installed: Path) -> None:
    """The last text of the page: values, gradient, placement on the new kind and simulated time, without an import."""
    shown = TEXT.findall((CHECKOUT / "docs" / "extending.md").read_text("utf-8"))[-1]
    assert run(installed, f"import runpy; runpy.run_path({str(EXAMPLE / 'try_it.py')!r})") == shown


def test_known_names_import_no_package(installed: Path) -> None:
    """The entry points are read at the first name that the registry lacks, and once."""
    code = """
from partita.graph.ops.registry import find_op
assert find_op("MatMul") and "acme_ops" not in sys.modules
assert find_op("Smooth") and "acme_ops.smoothing" in sys.modules
assert "acme_ops.npu" not in sys.modules
from partita.devices import device_spec
assert device_spec("Acme N1").kind == "NPU"
"""
    assert run(installed, code) == ""


def test_its_pass_and_workload_are_on_the_command_line(installed: Path, tmp_path: Path) -> None:
    """A file each: the workload is written, and the pass moves its nodes; help and the list name both."""
    code = f"""
from partita.scenarios.cli import main
def call(*words):
    try:
        main(words)
    except SystemExit as ended:
        assert not ended.code
out = {str(tmp_path / "g.pb")!r}
call("workload", "smoothed", "--set", "length=8", "--set", "times=2", "--out", out)
call("show", out, "--devices", "cpu:1,npu:1", "--passes", "inline,on_npu", "--stage", "placed", "--node", "Smooth*")
call("workload")
call("simulate", "--help")
"""
    printed = run(installed, code)
    assert "6 nodes" in printed
    assert "@/job:localhost/replica:0/task:0/device:NPU:0\n" in printed
    assert "smoothed: A vector that is smoothed a few times." in printed
    assert "on_npu" in printed
