"""A table as TOML text in which each sourced number is one line.

    toml_text({"fits": {"products": {"floor_ns": {"value": "2810 ns", "source": "gemm.csv", "date": "2026-11-23"}}}})

    [fits.products]
    floor_ns = { value = "2810 ns", source = "gemm.csv", date = "2026-11-23" }

A table of texts and numbers alone stands on one line too; every other table gets a header. Texts of several lines stand
as several lines.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any


def toml_text(table: Mapping[str, Any]) -> str:  # Any: what TOML holds
    """The text of a table; it needs the package tomli_w."""
    return "\n".join(_lines(table, "")).strip("\n") + "\n"


def _lines(table: Mapping[str, Any], path: str) -> Iterator[str]:
    here = {key: value for key, value in table.items() if not isinstance(value, Mapping) or _fits_a_line(value)}
    if path and (here or not table):
        yield f"\n[{path}]"
    for key, value in here.items():
        yield f"{_key(key)} = {_inline(value)}" if isinstance(value, Mapping) else _plain(key, value)
    for key, value in table.items():
        if key not in here:
            yield from _lines(value, f"{path}.{_key(key)}" if path else _key(key))


def _fits_a_line(table: Mapping[str, Any]) -> bool:
    return bool(table) and not any(
        isinstance(value, Mapping | list) or (isinstance(value, str) and "\n" in value) for value in table.values()
    )


def _inline(table: Mapping[str, Any]) -> str:
    return "{ " + ", ".join(_plain(key, value) for key, value in table.items()) + " }"


def _plain(key: str, value: Any) -> str:
    """`key = value` of anything but a table; a list stays on one line."""
    dumps = import_module("tomli_w").dumps
    if isinstance(value, list) and not any(isinstance(item, Mapping) for item in value):
        items = (dumps({"x": item}).removeprefix("x = ").rstrip("\n") for item in value)
        return f"{_key(key)} = [{', '.join(items)}]"
    text: str = dumps({key: value}, multiline_strings=True)
    return text.rstrip("\n")


def _key(key: str) -> str:
    text: str = import_module("tomli_w").dumps({key: 0})
    return text.removesuffix(" = 0\n")
