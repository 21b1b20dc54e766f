"""Docstrings become reStructuredText, which is what autodoc wants to be given; ours are plain text.

    In:  Bytes of `node`:            Out:  Bytes of ``node``:

             2 * size                      ::

                                               2 * size

A paragraph with an indented line, or with columns, is an example or a table: it is shown as it is. A name in backticks
that the reference describes becomes a link. Of all else that has a meaning in reStructuredText (stars, bars,
underscores), nothing is meant.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from textwrap import dedent, indent
from typing import TYPE_CHECKING

from room_pages import targets_by_name

if TYPE_CHECKING:
    from sphinx.application import Sphinx

CODE = re.compile(r"`([^`\s](?:[^`\n]*[^`\s])?)`")
IS_SHOWN_AS_IT_IS = re.compile(r"^ +\S|\S {3,}\S|[│├└]", re.MULTILINE)
ITEM = re.compile(r"^(?:- |\d+\. )")
SPECIAL = re.compile(r"[\\*_|`]")


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("autodoc-process-docstring", process)
    return {"parallel_read_safe": True}


def process(app: Sphinx, what: str, name: str, thing: object, options: object, lines: list[str]) -> None:
    """The hook of autodoc: replaces the lines of a docstring."""
    lines[:] = restructured("\n".join(lines)).splitlines()


def restructured(text: str) -> str:
    """A docstring as reStructuredText."""
    return "\n\n".join(_block(paragraph) for paragraph in _paragraphs(text))


def _paragraphs(text: str) -> Iterator[str]:
    """What empty lines separate; examples that follow each other are one, with the empty lines between them."""
    waiting: list[str] = []
    for paragraph in re.split(r"\n(?:[ \t]*\n)+", text.strip("\n")):
        if paragraph.startswith("    "):
            waiting.append(paragraph)
            continue
        if waiting:
            yield "\n\n".join(waiting)
            waiting = []
        yield paragraph
    if waiting:
        yield "\n\n".join(waiting)


def _block(paragraph: str) -> str:
    if ITEM.match(paragraph):
        return re.sub(r"^(?=- |\d+\. )", "\n", _inline(paragraph), flags=re.MULTILINE).strip("\n")
    if IS_SHOWN_AS_IT_IS.search(paragraph):
        shown_as = "::" if paragraph.startswith(" ") else ".. code-block:: text"
        return f"{shown_as}\n\n" + indent(dedent(paragraph), "    ")
    return _inline(paragraph)


def _inline(text: str) -> str:
    """Running text: code stays code, names that the reference has become links, all else stands for itself."""
    parts = CODE.split(text)
    return "".join(_code(part) if k % 2 else SPECIAL.sub(r"\\\g<0>", part) for k, part in enumerate(parts))


def _code(code: str) -> str:
    target = targets_by_name().get(code)
    text = f":py:obj:`{code} <{target}>`" if target else f"``{code}``"
    return rf"\ {text}\ "  # so that letters may follow: `Node`s
