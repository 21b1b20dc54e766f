"""The functions that an attr names.

Flows in: the message of an attr. Flows out: names, also of what the attrs of a named function name in turn.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..protos import AttrValue


def functions_in(value: AttrValue) -> Iterator[str]:
    """Names of the functions that an attr names, also in the attrs it gives to them."""
    for function in (value.func,) if value.HasField("func") else value.list.func:
        yield function.name
        for inner in function.attr.values():
            yield from functions_in(inner)
