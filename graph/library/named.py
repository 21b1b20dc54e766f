"""The names of the functions in an attr, including those in the attrs of functions that it names."""

from __future__ import annotations

from collections.abc import Iterator

from ..protos import AttrValue


def functions_in(value: AttrValue) -> Iterator[str]:
    """Names of the functions in an attr, including those in the attrs of functions that it names."""
    for function in (value.func,) if value.HasField("func") else value.list.func:
        yield function.name
        for inner in function.attr.values():
            yield from functions_in(inner)
