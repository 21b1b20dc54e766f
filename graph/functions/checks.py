"""Checks the calls of functions when a graph is imported, as TensorFlow does when it infers shapes through them.

The errors are those of instantiating the function. A missing function, or arguments of other types, is no error here:
lowering or running reports it. A function that calls itself is checked once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ...errors import InternalError
from ..library.calls import called_function, flag
from ..library.function_library import FunctionLibrary
from ..ops.properties import NodeProperties
from .body import FunctionBody, instantiate_call

_UNCHECKED = "_disable_call_shape_inference"


def check_call(node: NodeProperties, library: FunctionLibrary) -> None:
    """Raises what instantiating the function raises, and its nested calls; InternalError for missing ports."""
    seen: set[FunctionBody] = set()
    waiting = [_calls_among([node], library)]  # a stack: one iterator per function being checked
    while waiting:
        call = next(waiting[-1], None)
        if call is None:
            waiting.pop()
            continue
        body = _checked_body(call, library)
        if body not in seen and body not in library.checked:
            seen.add(body)
            inner = {properties for properties in body.graph.shared_properties() if properties is not None}
            waiting.append(_calls_among(inner, library))
    library.checked |= seen


def _calls_among(nodes: Iterable[NodeProperties], library: FunctionLibrary) -> Iterator[NodeProperties]:
    """The calls of library functions that have to be checked."""
    for node in nodes:
        function = called_function(node, library)
        if function is not None and function.name in library and not flag(node, _UNCHECKED):
            yield node


def _checked_body(call: NodeProperties, library: FunctionLibrary) -> FunctionBody:
    """The body of the function that a node calls; InternalError if it has more ports than the node."""
    function = called_function(call, library)
    assert function is not None  # the node is from `_calls_among`
    body = instantiate_call(library, function)
    for kind, ports, count in (
        ("input", len(call.input_types), len(body.arguments)),
        ("output", len(call.output_types), len(body.results)),
    ):
        if ports < count:
            raise InternalError(
                f"Function instantiation included invalid {kind} index: {ports} not in [0, {ports}).", op=call.op
            )
    return body
