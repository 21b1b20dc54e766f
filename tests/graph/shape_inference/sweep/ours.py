"""Which contradicting `_output_shapes` an import of Partita refuses, and where TensorFlow answers otherwise.

    python -m tests.graph.shape_inference.sweep.ours

writes `data/known.txt`: a line for each graph that is answered otherwise, with both answers, see `probes.py`. Ops
without a shape function are not asked for: nothing is known of their outputs.

    CSRSparseMatrixToDense: ? here, 2! there
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from partita.errors import PartitaError
from partita.graph.analysis.shape_functions import table
from partita.graph.attrs import encode
from partita.graph.checked_import import import_graph_def
from partita.graph.graph import Graph
from partita.graph.ops.record import CONTROL_FLOW, record_of
from partita.graph.protos import GraphDef
from tests.devices.kernels.sweep.cases import TARGET
from tests.graph.shape_inference.sweep.nodes import graphs
from tests.graph.shape_inference.sweep.probes import DIED, Shape, agrees, answer, read_answers

KNOWN = Path(__file__).parent / "data" / "known.txt"


class Target:
    """The node of a graph whose shapes are contradicted."""

    def __init__(self, graph_def: GraphDef) -> None:
        self._graph_def = graph_def
        self._node = next(node for node in graph_def.node if node.name == TARGET)

    def accepts(self, shapes: Sequence[Shape] | None) -> bool:
        """Whether the graph is imported with these shapes of its outputs."""
        self._node.attr.pop("_output_shapes", None)
        if shapes is not None:
            self._node.attr["_output_shapes"].CopyFrom(encode(shapes, "list(shape)"))
        try:
            import_graph_def(self._graph_def, Graph())
        except PartitaError:
            return False
        return True

    def num_outputs(self) -> int:
        """How many outputs there are; 0 if the graph is refused."""
        if not self.accepts(None):
            return 0
        graph = Graph()
        import_graph_def(self._graph_def, graph)
        node = graph.find_node(TARGET)
        assert node is not None
        return len(node.output_types)


def compared() -> Iterator[tuple[GraphDef, str, list[str]]]:
    """The graphs of ops whose shapes follow from rules, with the op and TensorFlow's answer."""
    for graph_def, (op, *theirs) in zip(graphs(), read_answers(), strict=True):
        if theirs != [DIED] and (op in table() or record_of(op).node_class in CONTROL_FLOW):
            yield graph_def, op, theirs


def differences(part: int = 0, num_parts: int = 1) -> Iterator[str]:
    """A line for each graph that is answered otherwise than by TensorFlow, of every `num_parts`-th graph."""
    for graph_def, op, theirs in islice(compared(), part, None, num_parts):
        target = Target(graph_def)
        if not agrees(theirs, target.accepts):
            ours = answer(target.num_outputs(), target.accepts)
            yield f"{op}: {' '.join(ours)} here, {' '.join(theirs)} there"


if __name__ == "__main__":
    KNOWN.write_text("".join(f"{line}\n" for line in differences()))
