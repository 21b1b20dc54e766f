"""What tests of the invariants of stages share: which rules a checker has, and that breaking one is told."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from partita.errors import InternalError

_CHECKOUT = Path(__file__).parents[1]
_REPORTING = {"broken", "no_node", "no_edge"}


def rules_of(file: str) -> set[str]:
    """The rules that a checker tells of when they are broken, as they stand in its source."""
    return set(_rules(ast.parse((_CHECKOUT / file).read_text())))


def _rules(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _REPORTING:
            value = node.args[0]
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == "rule":
            value = node.value
        else:
            continue
        if isinstance(value, ast.Constant):
            yield str(value.value)


def assert_all_are_broken(file: str, mutations: Mapping[str, Callable[[], object]]) -> None:
    """Every rule of a checker has a mutation, which makes a good graph break it and has it checked."""
    assert set(mutations) == rules_of(file)
    told = {rule: _told(check) for rule, check in mutations.items()}
    assert not {rule: message for rule, message in told.items() if repr(rule) not in message}


def _told(check: Callable[[], object]) -> str:
    try:
        check()
    except InternalError as error:
        return error.message
    return "nothing was wrong"
