"""The reference: a page for each package of `docs/api.md`, with every public name, its members, types and docstrings.

    docs/_generated/api/partita.graph.rst      title, what the package says, `.. autoclass:: partita.graph.Graph`, ...

The packages and names are those that `tools/make_api_page.py` lists. Protobuf messages have no text of their own: they
are listed together.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import make_api_page
from google.protobuf.message import Message

if TYPE_CHECKING:
    from sphinx.application import Sphinx

FOLDER = Path(__file__).parents[1] / "_generated" / "api"


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("builder-inited", lambda _: write_pages())
    return {"parallel_read_safe": True}


def write_pages() -> None:
    """Writes the page of each package, where it has changed: Sphinx reads again what is new."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for package in make_api_page.PACKAGES:
        text, path = page(package), FOLDER / f"{package}.rst"
        if not path.exists() or path.read_text("utf-8") != text:
            path.write_text(text, "utf-8")


def page(package: str) -> str:
    """The page of one package, in reStructuredText."""
    names = public_names(package)
    lines = [package, "=" * len(package), "", f".. automodule:: {package}", "   :no-members:", ""]
    messages = [name for name in names if is_message(getattr(import_module(package), name))]
    for name in names:
        if name not in messages:
            lines += ["", name, "-" * len(name), "", *entry(package, name)]
    if messages:
        lines += [
            "",
            "Messages",
            "--------",
            "",
            "Protobuf messages, wire-compatible with TensorFlow's of the same name.",
        ]
        lines += ["", *(line for name in messages for line in (f".. py:class:: {name}", ""))]
    return "\n".join(lines) + "\n"


def entry(package: str, name: str) -> Iterator[str]:
    """The directive of one public name."""
    value = getattr(import_module(package), name)
    if isinstance(value, type):
        yield f".. autoclass:: {package}.{name}"
        listed = members(value)
        if listed:
            yield f"   :members: {', '.join(listed)}"
            yield "   :undoc-members:"
    elif inspect.isroutine(value):
        yield f".. autofunction:: {package}.{name}"
    else:
        yield f".. py:data:: {name}"
        yield ""
        yield f"   {make_api_page.text_below(import_module(package), name)}"
    yield ""


def public_names(package: str) -> list[str]:
    """In the order of the page."""
    return sorted(make_api_page.public_names(import_module(package)), key=str.lower)


def is_message(value: object) -> bool:
    """Whether it is the class of a protobuf message."""
    return isinstance(value, type) and issubclass(value, Message)


def members(owner: type) -> list[str]:
    """The public members of a class that Partita defines, those of its bases included, in the order of definition."""
    bases = [base for base in reversed(owner.__mro__) if base.__module__.startswith("partita")]
    return list(dict.fromkeys(name for base in bases for name in vars(base) if not name.startswith("_")))


@cache
def targets_by_name() -> dict[str, str]:
    """By what stands in text, `Graph` or `Graph.nodes`, the full name under which the reference has it.

    A name that two packages have is that of the first.
    """
    targets: dict[str, str] = {}
    for package in make_api_page.PACKAGES:
        for name in public_names(package):
            targets.setdefault(name, f"{package}.{name}")
            value = getattr(import_module(package), name)
            if isinstance(value, type) and not is_message(value):
                for member in members(value):
                    targets.setdefault(f"{name}.{member}", f"{package}.{name}.{member}")
    return targets
