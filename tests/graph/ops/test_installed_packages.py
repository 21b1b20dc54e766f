"""Entry points of installed packages that add ops and kinds of devices."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest


def printed(folder: Path, code: str) -> str:
    """The output of a program that has the folder on its path."""
    program = f"import sys; sys.path.append({str(folder)!r})\n{code}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_broken_package_is_an_error_at_every_look_up(install: Callable[[str, str, str], Path]) -> None:
    """It names the module, the entry point and what to do; known names go on."""
    folder = install("acme", "import nowhere_to_be_found", "[partita.ops]\nacme = acme\n")
    code = """
from partita.errors import InvalidArgumentError
from partita.graph.ops.registry import find_op
find_op("MatMul")
for _ in range(2):
    try:
        find_op("Acme")
    except InvalidArgumentError as error:
        print(error.message)
"""
    message = (
        "the module 'acme', entry point 'acme' of 'partita.ops', cannot be imported: "
        "ModuleNotFoundError(\"No module named 'nowhere_to_be_found'\"); mend or remove its package\n"
    )
    assert printed(folder, code) == 2 * message


def test_an_entry_point_names_a_module(install: Callable[[str, str, str], Path]) -> None:
    """A part of one is refused: importing it would not call it."""
    folder = install("acme", "def register(): pass", "[partita.device_kinds]\nacme = acme:register\n")
    code = """
from partita.errors import InvalidArgumentError
from partita.devices import local_cluster
try:
    local_cluster("npu:1")
except InvalidArgumentError as error:
    print(error.message)
"""
    assert "must name a module and no part of one" in printed(folder, code)


@pytest.mark.parametrize("name", ["Acme", "Other"])
def test_the_module_is_imported_once(install: Callable[[str, str, str], Path], name: str) -> None:
    """At the first unknown name, whether or not it is one of the package's; the list of all names has its op."""
    folder = install(
        "acme",
        "from partita.graph import register_op\nprint('once')\nregister_op('Acme')",
        "[partita.ops]\nacme = acme\n",
    )
    code = f"""
from partita.graph.ops.registry import find_op, op_names
print(find_op({name!r}))
print(find_op("Another"), "Acme" in op_names())
"""
    expected = "<OpSignature Acme>" if name == "Acme" else "None"
    assert printed(folder, code) == f"once\n{expected}\nNone True\n"
