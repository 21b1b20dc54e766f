"""Makes `docs/api.md`: every public name of Partita, and members of its main classes, with what they say of themselves.

Public is what the packages below list in `__all__`. `tests/test_generated_pages.py` compares the page
with the committed one.

    python tools/make_api_page.py
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from functools import cached_property
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from types import ModuleType

from google.protobuf.message import Message

TARGET = Path(__file__).parent.parent / "docs" / "api.md"
PACKAGES = (
    "partita.graph",
    "partita.devices",
    "partita.rendezvous",
    "partita.actors",
    "partita.scenarios",
    "partita.scenarios.planners",
    "partita.errors",
)
CLASSES = (
    ("partita.graph", "GraphBuilder"),
    ("partita.devices", "Cluster"),
    ("partita.devices", "Timeline"),
    ("partita.actors", "Session"),
)
"""those whose members are listed, with the package that they come from"""
HEAD = """# Public names

Made by `tools/make_api_page.py`; do not edit. What users need comes from these packages, which load a name's module
when the name is first used. Everything else may move without notice.
"""


def first_line(value: object) -> str:
    """The first line of what a public thing says of itself; LookupError where it says nothing of its own."""
    if isinstance(value, type) and issubclass(value, Message):
        return f"the protobuf message `{value.DESCRIPTOR.name}`, wire-compatible with TensorFlow's"
    own = inspect.getdoc(value) if inspect.isroutine(value) or isinstance(value, type) else None
    if not own or own.startswith(f"{getattr(value, '__name__', '')}("):  # what dataclasses write by themselves
        raise LookupError("has no docstring")
    return first_paragraph(own)


def first_paragraph(text: str) -> str:
    """What a docstring says first, on one line."""
    return text.partition("\n\n")[0].replace("\n", " ")


def signature(value: object) -> str:
    """The parameters of a function by name, as they are given."""
    if not inspect.isroutine(value) or isinstance(value, cached_property):
        return ""
    parameters = inspect.signature(value).parameters.values()
    shown, keyword_only = [], False
    for parameter in parameters:
        if parameter.kind is parameter.KEYWORD_ONLY and not keyword_only:
            shown.append("*")
            keyword_only = True
        star = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
        keyword_only = keyword_only or bool(star)
        shown.append(f"{star}{parameter.name}{'' if parameter.default is parameter.empty else '=…'}")
    return f"({', '.join(shown)})"


def public_names(module: ModuleType) -> list[str]:
    """What a package lists, or the classes that a module defines."""
    classes = [name for name, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__]
    return getattr(module, "__all__", None) or [name for name in classes if not name.startswith("_")]


def text_below(module: ModuleType, name: str) -> str:
    """The text that stands below the assignment of a constant, in the module that defines it."""
    home = getattr(module, "module_by_name", {}).get(name)
    source = inspect.getsource(import_module(home, module.__name__) if home else module)
    body = ast.parse(source).body
    for statement, following in pairwise(body):
        targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
        if any(isinstance(target, ast.Name) and target.id == name for target in targets):
            if isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant):
                return str(following.value.value).replace("\n", " ")
            raise LookupError("has no text below it")
    raise LookupError("is not assigned where it is said to be")


def rows(package: str) -> Iterator[str]:
    """The rows of one package; LookupError for a name that nothing is said of."""
    module = import_module(package)
    for name in sorted(public_names(module), key=str.lower):
        value = getattr(module, name)
        is_described = isinstance(value, type) or inspect.isroutine(value)
        try:
            text = first_line(value) if is_described else text_below(module, name)
        except LookupError as error:
            raise LookupError(f"{package}.{name} {error}") from None
        yield f"| `{name}{signature(value)}` | {text.replace('|', chr(92) + '|')} |"


def members(owner: type) -> Iterator[str]:
    """The rows of the public methods and properties of a class, its bases' included, in the order of their definition.

    LookupError for a member that nothing is said of.
    """
    own = {name: value for base in reversed(owner.__mro__[:-1]) for name, value in vars(base).items()}
    for name, value in own.items():
        if name.startswith("_") or not (inspect.isfunction(value) or isinstance(value, property | cached_property)):
            continue
        text = inspect.getdoc(value)
        if not text:
            raise LookupError(f"{owner.__name__}.{name} has no docstring")
        waits = "await " if inspect.iscoroutinefunction(value) else ""
        shown = signature(value).replace("(self, ", "(").replace("(self)", "()")
        yield f"| `{waits}{name}{shown}` | {first_paragraph(text).replace('|', chr(92) + '|')} |"


def page() -> str:
    """The page."""
    lines = [HEAD]
    for package in PACKAGES:
        says = (import_module(package).__doc__ or "").partition("\n\n")[0].replace("\n", " ")
        lines += [f"## {package}\n", f"{says}\n", "| name | what it is |", "|---|---|", *rows(package), ""]
    for package, name in CLASSES:
        lines += [f"## Members of {name}\n", "| member | what it is |", "|---|---|"]
        lines += [*members(getattr(import_module(package), name)), ""]
    return "\n".join(lines)


if __name__ == "__main__":
    TARGET.write_text(page())
