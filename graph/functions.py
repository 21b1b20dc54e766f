"""The function library of a graph.

Flows in: FunctionDefLibrary messages. Flows out: a new one. Always holds: a name means one function.
"""

from __future__ import annotations

from ..errors import InvalidArgumentError
from .protos import FunctionDefLibrary


def merged_library(old: FunctionDefLibrary, new: FunctionDefLibrary) -> FunctionDefLibrary:
    """Both libraries in one; neither argument changes.

    Raises InvalidArgumentError when they define one name differently.
    """
    if not new.function and not new.gradient:
        return old
    merged = FunctionDefLibrary()
    merged.CopyFrom(old)
    known = {f.signature.name: f for f in old.function}
    for function in new.function:
        name = function.signature.name
        if name not in known:
            merged.function.append(function)
        elif known[name] != function:
            raise InvalidArgumentError(
                f"Cannot add function {name!r} because a different function with the same name already exists."
            )
    gradients = {g.function_name for g in old.gradient}
    merged.gradient.extend(g for g in new.gradient if g.function_name not in gradients)
    return merged
