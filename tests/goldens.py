"""Golden texts: the text that a test expects stands in the test, or in a file beside it if it is long.

    assert_text(
        graph,
        '''
        2 nodes
        x: float = Placeholder() {shape=[]}
        y: float = Neg(x)
        ''',
    )

When a text is to change, or for a new test that expects "", run the tests with PARTITA_WRITE_GOLDENS=1:

    PARTITA_WRITE_GOLDENS=1 python -m pytest tests/graph/passes/test_inline.py && ruff format tests

Every text that differs is then replaced by the actual one and its test passes; `git diff` shows what to review. A text
can be written only where its call expects one text: not in a loop or a parametrised test with several.
"""

from __future__ import annotations

import ast
import inspect
import os
from collections import defaultdict
from pathlib import Path
from textwrap import dedent, indent

_IS_WRITING = bool(os.environ.get("PARTITA_WRITE_GOLDENS"))
_Place = tuple[int, int]
"""line and column of a call"""
_new_texts: dict[Path, dict[_Place, str]] = defaultdict(dict)


def assert_text(actual: object, expected: str) -> None:
    """Compares `str(actual)` with a text that stands indented in the test, between two lines of quotes.

    A newline at the end does not count.
    """
    text = str(actual).removesuffix("\n")
    if _IS_WRITING and text != _plain(expected):
        file, place = _caller()
        if _new_texts[file].setdefault(place, text) != text:
            raise ValueError(f"{file}:{place[0]}: this call is to compare several texts, only one can be written")
        return
    assert text == _plain(expected)


def assert_file(actual: object, path: Path) -> None:
    """Compares `str(actual)` with the text of a file."""
    text = str(actual)
    if _IS_WRITING:
        path.write_text(f"{text}\n", "utf-8")
    assert text == path.read_text("utf-8").removesuffix("\n")


def write_texts() -> None:
    """Puts the texts that differed into the sources of the tests; the end of a run calls it."""
    for file, texts in _new_texts.items():
        file.write_text(with_texts(file.read_text("utf-8"), texts), "utf-8")


def with_texts(source: str, texts: dict[_Place, str]) -> str:
    """A source in which the calls of `assert_text` at these places expect other texts."""
    calls = {(node.lineno, node.col_offset): node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)}
    lines = source.splitlines(keepends=True)
    for place in sorted(texts, reverse=True):  # from the end, so that the places of the others stay right
        expected = calls[place].args[1]
        first, last = expected.lineno - 1, (expected.end_lineno or 0) - 1
        before = lines[first].encode()[: expected.col_offset].decode()
        after = lines[last].encode()[expected.end_col_offset :].decode()
        margin = " " * (len(before) - len(before.lstrip()) + 4 * bool(before.strip()))
        lines[first : last + 1] = f"{before}{_literal(texts[place], margin)}{after}".splitlines(keepends=True)
    return "".join(lines)


def _plain(expected: str) -> str:
    """A text without the indentation that it has in the source."""
    return dedent(expected).strip()


def _literal(text: str, margin: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"""', '\\"""')
    return f'"""\n{indent(escaped, margin)}\n{margin}"""'


def _caller() -> tuple[Path, _Place]:
    """The call of `assert_text` that is going on."""
    frame = inspect.stack()[2]
    positions = frame.positions
    assert positions is not None
    assert positions.lineno is not None
    assert positions.col_offset is not None
    return Path(frame.filename), (positions.lineno, positions.col_offset)
