"""Names of types in signatures, as Python spells them, lead to the entries of the reference.

    partita.graph.graph.Graph      ->  the entry of partita.graph.Graph
    partita.graph.columns.Columns  ->  no entry, since it is no public name: its text stays without a link
    numpy.ndarray                  ->  no page of this site: the same

What a module imports for type checkers only is imported here, so that its annotations can be read. A name that does not
exist, as after a module has moved, is left to Sphinx, which warns.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import sys
from functools import cache
from importlib import import_module
from types import ModuleType

import make_api_page
from docutils.nodes import document
from room_pages import public_names, targets_by_name
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("builder-inited", lambda _: complete_modules())
    app.connect("doctree-read", lambda _, tree: link_names(tree))
    return {"parallel_read_safe": True}


def complete_modules() -> None:
    """Gives each module that a public name comes from what its annotations need, and the modules that this loads."""
    public_homes()
    done: set[str] = set()
    while waiting := _modules() - done:
        for name in waiting:
            _import_for_annotations(sys.modules[name])
        done |= waiting


def _modules() -> set[str]:
    """The loaded modules of Partita that import names for type checkers; packages have a list of public names there."""
    return {
        name
        for name, module in sys.modules.items()
        if name.startswith("partita.") and "TYPE_CHECKING" in vars(module) and "module_by_name" not in vars(module)
    }


def _import_for_annotations(module: ModuleType) -> None:
    for statement in ast.parse(inspect.getsource(module)).body:
        if isinstance(statement, ast.If) and isinstance(statement.test, ast.Name):
            block = ast.Module(statement.body, [])
            exec(compile(block, str(module.__file__), "exec"), vars(module))  # the imports of our own source


def link_names(tree: document) -> None:
    """The hook of Sphinx: gives each name of a page its entry, or makes it a text where it has none and needs none."""
    for reference in list(tree.findall(pending_xref)):
        if reference.get("refdomain") != "py":
            continue
        name = reference["reftarget"]
        target = None if hasattr(builtins, name) else public_homes().get(name) or targets_by_name().get(name)
        if target is not None:
            reference["reftarget"], reference["reftype"] = target, "obj"
            reference.attributes.pop("refspecific", None)
        elif name not in targets_by_name().values() and exists(name):
            reference.parent.replace(reference, reference.children)


@cache
def public_homes() -> dict[str, str]:
    """By the name that a class has in its own module, `partita.graph.graph.Graph`, its public name."""
    homes: dict[str, str] = {}
    for package in make_api_page.PACKAGES:
        for name in public_names(package):
            value = getattr(import_module(package), name)
            home = f"{getattr(value, '__module__', package)}.{getattr(value, '__qualname__', name)}"
            homes.setdefault(home, f"{package}.{name}")
    return homes


@cache
def exists(name: str) -> bool:
    """Whether a dotted name can be imported, and one without dots is Python's own or of one of our modules."""
    plain = name.lstrip("~").partition("[")[0]  # the first part of an alias that is written as a text
    if "." not in plain:
        return hasattr(builtins, plain) or any(plain in vars(sys.modules[module]) for module in _own_modules())
    module, _, attribute = plain.rpartition(".")
    try:
        return hasattr(import_module(module), attribute)
    except ImportError:
        owner, _, name_of_class = module.rpartition(".")
        return exists(module) and hasattr(getattr(import_module(owner), name_of_class), attribute)


def _own_modules() -> list[str]:
    return [name for name in sys.modules if name.startswith("partita.")]
