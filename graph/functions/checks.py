"""What importing a graph says about its calls of functions.

Flows in: the properties of a node, and the library of its graph. Flows out: nothing, or the error that TensorFlow's
import raises when it looks into the function for the shapes of its results. Always holds: a function that the library
lacks is no error here, nor is one that is given values of other types: those are found when the graph is lowered or
run; a function that calls itself is looked into once.
"""

from __future__ import annotations

from ...errors import InternalError
from ..properties import NodeProperties
from .body import FunctionBody, instantiate_call
from .calls import called_function, flag
from .library import FunctionLibrary

_UNCHECKED = "_disable_call_shape_inference"


def check_call(node: NodeProperties, library: FunctionLibrary) -> None:
    """Raises what instantiating the function raises, also for the calls in it; InternalError for missing ports."""
    _check(node, library, set())


def _check(node: NodeProperties, library: FunctionLibrary, seen: set[FunctionBody]) -> None:
    function = called_function(node, library)
    if function is None or function.name not in library or flag(node, _UNCHECKED):
        return
    body = instantiate_call(library, function)
    for what, ports, count in (
        ("input", len(node.input_types), len(body.arguments)),
        ("output", len(node.output_types), len(body.results)),
    ):
        if ports < count:
            raise InternalError(
                f"Function instantiation included invalid {what} index: {ports} not in [0, {ports}).", op=node.op
            )
    if body not in seen:
        seen.add(body)
        for inner in {properties for properties in body.graph.shared_properties() if properties is not None}:
            _check(inner, library, seen)
