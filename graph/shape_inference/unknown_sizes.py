"""The error for a size that a step needs and nobody knows: which node needs it, and whose shape to give.

One unknown shape makes others unknown, so the error names where it begins:

    x = Placeholder: (?, 3)        y = Neg(x): (?, 3)        z = MatMul(y, w): (?, 5)

    y needs the size of x; it is first unknown in x; --shape x=2,3 tells it

Sizes of outputs that nobody reads are not needed. Resource handles and variants have none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ...errors import InvalidArgumentError
from ..analysis.dims import shape_text
from ..analysis.fed_nodes import given_names
from ..arrays import owners
from ..dtypes import DataType, Shape, base_type, known_dims
from ..edge_ends import Output
from ..ops.record import TRANSFERS, NodeClass

if TYPE_CHECKING:
    from ..analysis.joined import JoinedGraph
    from ..arrays import Flags
    from .inferred import InferredShapes

_EXAMPLE = 2  # for each unknown size of a shape that the caller is to give
_WITHOUT_SIZE = (DataType.RESOURCE, DataType.VARIANT)
_NUMBERS = (DataType.INT32, DataType.INT64)


@dataclass(frozen=True, slots=True, eq=False)
class CallSite:
    """Where a body is called from: by node `n` of `shapes.graph`, whose inputs from `first` on are the arguments.

    `name` makes of the name of a node of the body its name in the step; `around` is where the calling graph is called.
    """

    shapes: InferredShapes
    n: int
    first: int
    name: Callable[[str], str]
    around: CallSite | None


def check_sizes(inferred: InferredShapes, runs: Flags, called: CallSite | None = None) -> None:
    """InvalidArgumentError if a node that runs reads a tensor of unknown size; `runs` is by joint number.

    Of several nodes the error names the first in topological order, if possible one that does more than pass it on.
    """
    graph = inferred.graph
    if not inferred.may_be_open:
        return
    dst = owners(np.diff(graph.input_start))
    edges = np.flatnonzero(inferred.is_open(graph.input_src, graph.input_output) & runs[dst] & runs[graph.input_src])
    ends = zip(graph.input_src[edges].tolist(), graph.input_output[edges].tolist(), dst[edges].tolist(), strict=True)
    needs: dict[int, Output] = {}
    for src, output, n in ends:
        if _has_size(graph, (src, output)):
            needs.setdefault(n, (src, output))
    if not needs:
        return
    position = np.empty(len(graph), np.int64)
    position[graph.order()] = np.arange(len(graph))
    node = min(needs, key=lambda n: (_passes_on(graph, n), position[n]))
    raise unknown_size_error(inferred, node, needs[node], called)


def unknown_size_error(
    inferred: InferredShapes, n: int, source: Output, called: CallSite | None = None
) -> InvalidArgumentError:
    """The error for node `n`, which reads the unknown size of `source`; in a body its names are those in the step."""
    graph, shape = inferred.graph, inferred.of(source[0])[source[1]]
    begins, op, name = _origin(inferred, source, called)
    own = called.name if called is not None else str
    sizes = (_EXAMPLE, _EXAMPLE + 1) if begins is None else [_EXAMPLE if size is None else size for size in begins]
    what = "the rank" if shape is None else f"the size of axis {shape.index(None)}"
    return InvalidArgumentError(
        f"the cost needs {what} of {own(graph.names[source[0]])!r}, output {source[1]}, whose shape is "
        f"{shape_text(shape)}; it is first unknown in {name!r} ({op}), of shape {shape_text(begins)}: "
        f"give its shape, such as --shape {name}={','.join(map(str, sizes))}, "
        "or assume unknown sizes with --assume-size 1 (assumed_size=1)",
        node=own(graph.names[n]),
        op=graph.op(n),
    )


def _origin(inferred: InferredShapes, source: Output, called: CallSite | None) -> tuple[Shape, str, str]:
    """The shape, the op and the name in the step of what begins an unknown size, which may be outside of a body."""
    graph = inferred.graph
    *_, (n, output) = _path(inferred, source)
    if called is not None and graph.op(n) == "_Arg":
        argument = called.shapes.graph.inputs_of(called.n)[called.first + graph.properties[n].attrs["index"]]
        shape = called.shapes.of(argument[0])[argument[1]]
        if shape is None or None in shape:
            return _origin(called.shapes, argument, called.around)
    name = graph.names[n] + (f":{output}" if output else "")
    name = called.name(name) if called is not None else given_names(graph).get(n, name)
    return inferred.of(n)[output], graph.op(n), name


def _path(inferred: InferredShapes, source: Output) -> Iterator[Output]:
    """From an unknown size back to where it begins: the output of a node that reads no unknown size."""
    seen: set[int] = set()
    following: Output | None = source
    while following is not None and following[0] not in seen:
        seen.add(following[0])
        yield following
        following = _open_input(inferred, following[0]) or _open_behind_numbers(inferred, following[0])


def _open_input(inferred: InferredShapes, n: int) -> Output | None:
    """The first tensor of unknown size that a node reads; the back edge of a loop begins nothing."""
    graph = inferred.graph
    for src, output in _sources(graph, n):
        shape = inferred.of(src)[output]
        is_open = shape is None or None in shape
        if is_open and _has_size(graph, (src, output)) and not graph.is_back_edge(src, n):
            return src, output
    return None


def _open_behind_numbers(inferred: InferredShapes, n: int) -> Output | None:
    """A tensor of unknown size from which unknown numbers are computed that a node reads: x in Fill(Shape(x), 0)."""
    graph, seen, waiting = inferred.graph, {n}, [n]
    while waiting:
        for source in _sources(graph, waiting.pop()):
            is_number = base_type(graph.properties_of(source[0]).output_types[source[1]]) in _NUMBERS
            if source[0] in seen or not is_number or source in inferred.values:
                continue
            found = _open_input(inferred, source[0])
            if found is not None:
                return found
            seen.add(source[0])
            waiting.append(source[0])
    return None


def _sources(graph: JoinedGraph, n: int) -> list[Output]:
    """What a node reads; a receive reads what is sent to it."""
    send = int(graph.sender[n])
    return graph.inputs_of(send if send >= 0 else n)


def counted_size(shape: Shape) -> tuple[int, ...]:
    """The shape, if its sizes are known; else one of no elements: once sizes are checked, nobody reads the tensor."""
    known = known_dims(shape)
    return (0,) if known is None else known


def _has_size(graph: JoinedGraph, output: Output) -> bool:
    return base_type(graph.properties_of(output[0]).output_types[output[1]]) not in _WITHOUT_SIZE


def _passes_on(graph: JoinedGraph, n: int) -> bool:
    """Whether a node only passes a tensor on, so that another one needs its size first."""
    record = graph.properties_of(n).op_def.record
    return record.is_view or record.node_class in (*TRANSFERS, NodeClass.NO_OP)
