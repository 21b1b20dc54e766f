"""For tests of checkers: the rules of a checker, and a test that it reports each broken rule."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from partita.errors import InternalError

_CHECKOUT = Path(__file__).parents[1]
_REPORTING = {"broken", "no_node", "no_edge"}


def rules_of(file: str) -> set[str]:
    """The texts of the rules of a checker, read from its source."""
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
    """Every rule of a checker has a mutation, which breaks a valid graph and runs the checker; it reports the rule."""
    assert set(mutations) == rules_of(file)
    messages = {rule: _reported(check) for rule, check in mutations.items()}
    assert not {rule: message for rule, message in messages.items() if repr(rule) not in message}


def _reported(check: Callable[[], object]) -> str:
    try:
        check()
    except InternalError as error:
        return error.message
    return "nothing was wrong"
