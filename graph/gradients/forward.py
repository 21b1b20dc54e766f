"""The graph that is being differentiated, as the walk back sees it: with loops folded into single nodes.

Flows in: a graph, the tensors to differentiate by. Flows out: what nodes read, which of them an x leads to, sizes,
constants, loops, liveness. Always holds: all answers are about the graph as it was before the walk, but for nodes that
were declared.

A loop stands in the walk as one node, called by the id of its LoopCond: it reads what its Enters read and makes what
its Exits make. Inside, an iteration begins at the Enters and the Merges they lead to.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from ...errors import InvalidArgumentError
from ..analysis.data_edges import DataEdges, Output
from ..analysis.sizes import SizeFacts
from ..builder.extension import Extension
from ..builder.handles import Operation, Tensor
from ..dtypes import Array, DataType, base_type
from ..graph import Graph
from ..library.calls import called_function
from ..ops.properties import NodeProperties
from ..ops.record import NodeClass
from ..passes.lower_functional import is_functional
from ..protos import NameAttrList
from .liveness import Condition, Liveness
from .loops import Loop, Loops

DIFFERENTIABLE = frozenset(
    {
        DataType.HALF,
        DataType.BFLOAT16,
        DataType.FLOAT,
        DataType.DOUBLE,
        DataType.COMPLEX64,
        DataType.COMPLEX128,
        DataType.RESOURCE,
        DataType.VARIANT,
    }
)
"""types that something can flow back through; resources and variants stand for what they hold"""


class ForwardGraph:
    """See the module."""

    def __init__(self, graph: Graph, xs: Iterable[Output], stop: Iterable[int]) -> None:
        """`stop` are nodes that nothing flows back through."""
        self.graph = graph
        self.extension = Extension(graph)
        self.edges = DataEdges(graph)
        self.sizes = SizeFacts(self.edges.sources, graph.node_properties)
        self.loops = Loops(graph, self.edges)
        self.liveness = Liveness(graph, self.edges, self.loops)
        self.source = f"gradients:{graph.num_node_ids}"
        """the name of this walk: no other of this graph has it"""
        self.has_branches = any(
            properties.op_def.record.node_class is NodeClass.SWITCH for properties in graph.distinct_properties()[0]
        )
        self.stop = frozenset(stop)
        self.wanted = frozenset(node for node, _ in xs)
        self._made: dict[int, tuple[Operation, str]] = {}
        self._carrying: dict[NodeProperties, tuple[bool, ...]] = {}
        self.reached = self._reached()

    def check_outside(self, outputs: Iterable[Output]) -> None:
        """InvalidArgumentError if one of `outputs` is inside of a loop: it has many values, not one."""
        for node, _ in outputs:
            if node in self.loops.home:
                raise InvalidArgumentError(
                    "a tensor inside of a loop can neither be differentiated nor be differentiated by; take what "
                    "enters the loop or leaves it",
                    node=self.graph.node_name(node),
                    frame=self.loops.home[node].name,
                )

    def sources(self, node: int) -> Sequence[Output]:
        """What a node or a loop reads, by input port; nothing where an iteration begins."""
        found = self.loops.sources(node) if self.loops.home else None
        return self.edges.sources(node) if found is None else found

    def maker(self, source: Output) -> int:
        """The node, or the loop, that makes an output."""
        loop = self.loops.of_exit.get(source[0])
        return source[0] if loop is None else loop.condition

    def carries(self, node: int, port: int) -> bool:
        """Whether something can flow back into an output."""
        properties = self.graph.node_properties(node)
        carrying = self._carrying.get(properties)
        if carrying is None:
            carrying = tuple([base_type(dtype) in DIFFERENTIABLE for dtype in properties.output_types])
            self._carrying[properties] = carrying
        return carrying[port]

    def _reached(self) -> set[int]:
        """The nodes that xs lead to by tensors that something can flow back through."""
        queue = sorted(self.wanted)
        reached = set(queue)
        for node in queue:  # grows
            readers = [reader for reader, port in self.edges.readers(node) if self.carries(node, port)]
            for reader in (*readers, *self._pushed_on(node)):
                if reader not in reached:
                    reached.add(reader)
                    queue.append(reader)
        return reached

    def _pushed_on(self, node: int) -> Sequence[int]:
        """The stack that a node pushes on: what is popped depends on what was pushed, though no edge says so."""
        if self.graph.node_properties(node).op_def.name != "StackPushV2":
            return ()
        stack = self.edges.sources(node)[0][0]
        while self.loops.sources(stack) == ():
            stack = self.edges.sources(stack)[0][0]
        return (stack,)

    def functional(self, ys: Iterable[Output]) -> set[int]:
        """Conditionals, loops and calls of functions, as single nodes, that are between xs and ys."""
        found = self._back_from((node for node, _ in ys), frozenset())
        library, properties = self.graph.functions, self.graph.node_properties
        functional = {node for node in found if is_functional(properties(node), library)}
        return {node for node in functional if self.gradient_call(node) is None}

    def gradient_call(self, node: int) -> NameAttrList | None:
        """The gradient of the function that a node calls, if the library names one."""
        library = self.graph.functions
        function = called_function(self.graph.node_properties(node), library)
        name = "" if function is None else library.gradient_of(function.name)
        return NameAttrList(name=name, attr=function.attr) if function is not None and name else None

    def leading_to(self, loop: Loop, nodes: Iterable[int]) -> set[int]:
        """The nodes in a loop, inner loops included, between the xs and `nodes`, from iteration to iteration."""
        return self._back_from(nodes, {variable.enter for variable in loop.variables})

    def _back_from(self, nodes: Iterable[int], entrances: Collection[int]) -> set[int]:
        """The nodes between the xs and `nodes`, as far as `entrances`."""
        queue = [node for node in nodes if node in self.reached]
        found = set(queue)
        for node in queue:  # grows
            if node in entrances:
                continue
            for src, port in self.edges.sources(node):
                if src in self.reached and src not in found and self.carries(src, port):
                    found.add(src)
                    queue.append(src)
        return found

    # Tensors

    def tensor(self, output: Output) -> Tensor:
        """The handle of an output of the graph; of a reference, of the value it refers to."""
        node, port = output
        if node in self._made:
            return self._made[node][0][port]
        dtype = base_type(self.graph.node_properties(node).output_types[port])
        return Tensor(self.extension, self.graph.node_name(node), port, dtype)

    def output(self, tensor: Tensor) -> Output:
        """The output that a handle stands for."""
        return self.extension.id_of(tensor.node), tensor.port

    def device(self, output: Output) -> str:
        """The device requested for the node of an output."""
        made = self._made.get(output[0])
        return self.graph.requested_device(output[0]) if made is None else made[1]

    def constant(self, output: Output) -> tuple[Array, DataType] | None:
        """Value and type of an output that is a Const, else None."""
        if output[0] in self._made:
            return None
        properties = self.graph.node_properties(output[0])
        if properties.op_def.name != "Const":
            return None
        return properties.attrs["value"], properties.output_types[0]

    def declare(self, made: Operation, device: str, home: Loop | None, condition: Condition) -> None:
        """Says what a new node is, so that its outputs can be asked for like those of others."""
        node = self.extension.id_of(made.name)
        self._made[node] = made, device
        self.liveness.declare(node, condition)
        if home is not None:
            self.loops.home[node] = home


def result_types(arguments: Iterable[DataType]) -> list[DataType]:
    """Types of the gradients of arguments: of a resource, TensorFlow takes it, that of a float variable."""
    return [DataType.FLOAT if dtype is DataType.RESOURCE else dtype for dtype in arguments]
