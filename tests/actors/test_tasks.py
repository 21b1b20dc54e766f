"""Every task that the package starts is protected from Ctrl-C.

trio raises KeyboardInterrupt at once in unprotected code of whichever task runs, its own events too: a task that ended
there may be woken up later, which breaks the event loop.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import partita

ROOT = Path(next(iter(partita.__path__)))
AT_LEAST = 12  # places where tasks are started


def test_every_task_is_protected() -> None:
    """What `start_soon` gets has `enable_ki_protection`; a method of another object has it in some class."""
    trees = {path: ast.parse(path.read_text("utf-8")) for path in sorted((ROOT / "actors").rglob("*.py"))}
    protected = {path: dict(_protected(tree)) for path, tree in trees.items()}
    started = [(path, function) for path, tree in trees.items() for function in _started(tree)]
    assert len(started) >= AT_LEAST
    for path, function in started:
        owner, _, name = function.rpartition(".")
        is_here = owner in ("", "self") and name in protected[path]
        files = [path] if is_here else list(trees)
        assert any(protected[file].get(name) for file in files), (
            f"{path.relative_to(ROOT)}: {function} is not protected"
        )


def _protected(tree: ast.Module) -> Iterator[tuple[str, bool]]:
    """The async functions of a file, and whether they are."""
    for node in ast.walk(tree):
        if isinstance(node, ast.AsyncFunctionDef):
            yield node.name, "trio.lowlevel.enable_ki_protection" in map(ast.unparse, node.decorator_list)


def _started(tree: ast.Module) -> Iterator[str]:
    """The functions that are given to `start_soon`, except those that a function was itself given."""
    parameters = {argument.arg for node in ast.walk(tree) if isinstance(node, ast.arguments) for argument in node.args}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "start_soon":
            function = ast.unparse(node.args[0])
            if function not in parameters:
                yield function
