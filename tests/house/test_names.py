"""The package defines nothing that only tests use: a name is used inside, is public, or stands below with a reason."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

CHECKOUT = Path(__file__).parents[2]
ROOMS = ("actors", "devices", "graph", "rendezvous", "scenarios")

TENSORFLOWS = "functions of the module of TensorFlow that it stands for, compared with it; for programs that are ported"
ALLOWED = {
    "actors/plans/printer.py": "the printer of a stage, whose text tests compare",
    "actors/running/reference.py": "the interpreter that is the oracle of tests",
    "graph/builder/testlib.py": "nodes for the graphs of tests, ours and those of programs outside",
    "graph/checking.py": "switches on the checkers between stages",
    "devices/timing/costs/measured.py": "a source of costs that programs make from a file of another runtime",
    "actors/sessions/graph_manager.py": TENSORFLOWS,
    "graph/analysis/cost_model.py": TENSORFLOWS,
    "graph/analysis/schedule.py": TENSORFLOWS,
    "graph/builder/node_builder.py": TENSORFLOWS,
    "graph/device_name.py": TENSORFLOWS,
    "graph/graphdef/default_attrs.py": TENSORFLOWS,
    "graph/graphdef/node_names.py": TENSORFLOWS,
    "graph/ops/op_def_equality.py": TENSORFLOWS,
    "graph/validate.py": TENSORFLOWS,
}
"""files that may define names that only tests use"""

CALLED_BY_NOTEBOOKS = {"_repr_html_"}

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def sources(*folders: str) -> list[Path]:
    """Own Python files below the folders, without those protoc wrote."""
    files = [path for folder in folders for path in (CHECKOUT / folder).rglob("*.py")]
    return sorted(path for path in files if "_pb2" not in path.name and "build" not in path.parts)


PACKAGE = [*sources(*ROOMS), *(CHECKOUT / f"{name}.py" for name in ("__main__", "collector", "errors", "lazy"))]


def uses(path: Path) -> Iterator[str]:
    """Names that a file reads; also those in texts that are names, which `getattr` and declarations use."""
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.Name(id=name, ctx=ast.Load()) | ast.Attribute(attr=name) | ast.keyword(arg=str(name)):
                yield name
            case ast.alias(name=name, asname=str(other)) if name != other:
                yield name
            case ast.Constant(value=str(text)) if re.fullmatch(r"[\w.]+", text):
                yield from text.split(".")


def imported(path: Path) -> Iterator[str]:
    """Names that a file imports from others."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            yield from (alias.name for alias in node.names)


def definitions(path: Path, public: frozenset[str]) -> Iterator[str]:
    """Functions, classes and constants of a module, and methods of its classes that are not public.

    Not those that a decorator registers, nor those that the language or a library calls.
    """
    for node in ast.parse(path.read_text()).body:
        members = node.body if isinstance(node, ast.ClassDef) and node.name not in public and not node.bases else []
        for each in (node, *members):
            if isinstance(each, Definition) and not any(isinstance(by, ast.Call) for by in each.decorator_list):
                yield each.name
        if isinstance(node, ast.Assign):
            yield from (target.id for target in node.targets if isinstance(target, ast.Name))


def test_nothing_is_there_for_tests_alone() -> None:
    """Nor for nobody: what the package does not use, docs/api.md, a tool, a benchmark or an example does."""
    public = frozenset(re.findall(r"^\| `(\w+)", (CHECKOUT / "docs" / "api.md").read_text(), re.MULTILINE))
    packages = [path for path in PACKAGE if path.name == "__init__.py"]
    public |= {name for path in packages for name in imported(path)}
    used = {name for path in (*PACKAGE, *sources("tools", "benchmarks", "docs")) for name in uses(path)} | public
    only_tests = {
        path.relative_to(CHECKOUT).as_posix(): left
        for path in PACKAGE
        if (left := {n for n in definitions(path, public) if not n.startswith("__")} - used - CALLED_BY_NOTEBOOKS)
    }
    assert len(PACKAGE) > 1000
    assert {file: names for file, names in only_tests.items() if file not in ALLOWED} == {}
    assert set(ALLOWED) <= set(only_tests), "an exception that is no longer needed"
