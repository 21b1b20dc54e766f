"""Packages that load their public names at first use: type checkers see the same names, in every order of imports."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import FunctionType

import pytest

from partita.lazy import LazyPackage

CHECKOUT = Path(__file__).parents[1]
ROOMS = ("actors", "devices", "graph", "rendezvous", "scenarios")  # and no copies, as environments and builds have them
LAZY = sorted(
    ".".join(path.parent.relative_to(CHECKOUT).parts)
    for room in ROOMS
    for path in (CHECKOUT / room).rglob("__init__.py")
    if "load_lazily(" in path.read_text()
)


def package(name: str) -> LazyPackage:
    """A lazy package."""
    module = import_module(f"partita.{name}")
    assert isinstance(module, LazyPackage)
    return module


def test_lazy_packages_are_found() -> None:
    """The tests below walk all of them."""
    assert len(LAZY) >= 9


@pytest.mark.parametrize("name", LAZY)
def test_type_checkers_read_what_runs(name: str) -> None:
    """All that a lazy package imports is for type checkers, passed on under its own name; it has no second list."""
    tree = ast.parse((CHECKOUT / name.replace(".", "/") / "__init__.py").read_text())
    [block] = [node for node in tree.body if isinstance(node, ast.If)]
    imports = [node for node in block.body if isinstance(node, ast.ImportFrom)]
    assert imports == block.body
    aliases = [(alias, "." * node.level + (node.module or "")) for node in imports for alias in node.names]
    assert all(alias.asname == alias.name for alias, _ in aliases)
    assert package(name).module_by_name == {alias.name: module for alias, module in aliases}
    assert vars(package(name))["__all__"] == sorted(alias.name for alias, _ in aliases)
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.List | ast.Dict)]


@pytest.mark.parametrize("name", LAZY)
def test_every_public_name_is_there(name: str) -> None:
    """Each name of a package can be imported from it, and dir() lists it."""
    assert set(package(name).module_by_name) <= set(dir(package(name)))
    for public in package(name).module_by_name:
        assert getattr(package(name), public) is not None


def test_an_unknown_name_is_an_attribute_error() -> None:
    """The message names the package and the name."""
    with pytest.raises(AttributeError, match=r"module 'partita\.graph' has no attribute 'grpah'"):
        package("graph").grpah  # noqa: B018 - the look-up is what fails


def test_the_garbage_collector_does_not_walk_what_is_imported() -> None:
    """The oldest generation, which holds what the dependencies made, is not collected while sessions are imported."""
    count = "gc.get_stats()[2]['collections']"
    code = f"import gc, numpy, trio; n = {count}; from partita.actors import open_session; print({count} - n)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout.strip() == b"0"


@pytest.mark.parametrize("name", ["gradients", "partition"])
@pytest.mark.parametrize(
    "order",
    [
        "from partita.graph import {name}",
        "import partita.graph.{name}; from partita.graph import {name}",
        "from partita.graph import {name}; import partita.graph.{name}; from partita.graph import {name}",
        "from partita.graph.{name} import *; from partita.graph import {name}",
        "import partita.actors; from partita.graph import {name}",
    ],
)
def test_a_function_hides_the_package_of_its_name(name: str, order: str) -> None:
    """`from partita.graph import gradients` gives the function, whatever was imported before."""
    check = f"; assert type({name}).__name__ == {FunctionType.__name__!r}, {name}"
    subprocess.run([sys.executable, "-c", order.format(name=name) + check], check=True)


def test_a_package_imports_nothing_until_it_is_asked() -> None:
    """`import partita.graph` loads none of its modules."""
    code = "import sys, partita.graph; print(sorted(name for name in sys.modules if name.startswith('partita.')))"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert loaded.strip() == "['partita.collector', 'partita.graph', 'partita.lazy']"
