"""The graph that is being differentiated, for the backward walk: inputs, reachability, sizes, constants and loops.

Answers are about the graph as it was before the walk, and about new nodes that were declared.

A loop is one node of the walk, identified by the id of its LoopCond: its inputs are those of its Enters and its outputs
those of its Exits. Inside, an iteration begins at the Enters and the Merges that they lead to.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence

from ...errors import InvalidArgumentError
from ..analysis.data_edges import DataEdges
from ..analysis.sizes import SizeFacts
from ..builder.extension import Extension
from ..builder.handles import Operation, Tensor
from ..dtypes import Array, DataType, base_type
from ..edge_ends import Output
from ..graph import Graph
from ..library.calls import called_function
from ..ops.properties import NodeProperties
from ..ops.record import Calls, NodeClass
from ..passes.lower_functional import is_functional
from ..protos import NameAttrList
from .liveness import BranchOutcomes, GradientLiveness
from .loops import DifferentiatedLoop, Loops
from .named_rules import names_rule

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
"""differentiable types; resources and variants stand for their contents"""


class ForwardGraph:
    """The graph, the nodes that xs lead to, and the facts that gradient rules ask for."""

    def __init__(self, graph: Graph, xs: Iterable[Output], stop: Iterable[int]) -> None:
        """`stop` has nodes that no gradient passes."""
        self.graph = graph
        self.extension = Extension(graph)
        self.edges = DataEdges(graph)
        self.sizes = SizeFacts(self.edges.sources, graph.node_properties)
        self.loops = Loops(graph, self.edges)
        self.liveness = GradientLiveness(graph, self.edges, self.loops)
        self.source = f"gradients:{graph.num_node_ids}"
        """the name of this walk, unique in the graph"""
        self.has_branches = NodeClass.SWITCH in graph.node_classes()
        self.stop = frozenset(stop)
        self.wanted = frozenset(node for node, _ in xs)
        self._made: dict[int, tuple[Operation, str]] = {}
        self._counts: dict[str, Counter[bytes]] = {}
        self._carrying: dict[NodeProperties, tuple[bool, ...]] = {}
        self.reached = self._reached()

    def check_outside(self, outputs: Iterable[Output]) -> None:
        """InvalidArgumentError if one of `outputs` is inside of a loop, where it has a value per iteration."""
        for node, _ in outputs:
            if node in self.loops.innermost:
                raise InvalidArgumentError(
                    "a tensor inside of a loop can neither be differentiated nor be differentiated by; take what "
                    "enters the loop or leaves it",
                    node=self.graph.node_name(node),
                    frame=self.loops.innermost[node].name,
                )

    def sources(self, node: int) -> Sequence[Output]:
        """The outputs that a node or a loop reads, by input port; none at the begin of an iteration."""
        of_loop = self.loops.sources(node) if self.loops.innermost else None
        return self.edges.sources(node) if of_loop is None else of_loop

    def maker(self, source: Output) -> int:
        """The node, or the loop, that an output belongs to."""
        loop = self.loops.of_exit.get(source[0])
        return source[0] if loop is None else loop.condition

    def next_number(self, attr: str, value: bytes) -> int:
        """As `Forward.next_number`."""
        counts = self._counts.get(attr)
        if counts is None:
            nodes = self.graph.op_nodes()
            counts = self._counts[attr] = Counter(node.attrs[attr] for node in nodes if attr in node.attrs)
        counts[value] += 1
        return counts[value]

    def carries(self, node: int, port: int) -> bool:
        """Whether an output can have a gradient."""
        properties = self.graph.node_properties(node)
        carrying = self._carrying.get(properties)
        if carrying is None:
            carrying = tuple([base_type(dtype) in DIFFERENTIABLE for dtype in properties.output_types])
            self._carrying[properties] = carrying
        return carrying[port]

    def _reached(self) -> set[int]:
        """The nodes that xs lead to through differentiable tensors."""
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
        """The stack that a node pushes on: popped values depend on pushed ones, though no edge connects them."""
        if self.graph.node_properties(node).op_def.name != "StackPushV2":
            return ()
        stack = self.edges.sources(node)[0][0]
        while self.loops.sources(stack) == ():
            stack = self.edges.sources(stack)[0][0]
        return (stack,)

    def functional(self, ys: Iterable[Output]) -> set[int]:
        """Conditionals, loops and calls between xs and ys that are single nodes, and have no gradient as such."""
        between = self.between(ys)
        library, properties = self.graph.functions, self.graph.node_properties
        functional = {node for node in between if is_functional(properties(node), library)}
        return {node for node in functional if not names_rule(properties(node)) and self.gradient_call(node) is None}

    def taken_by_calls(self, nodes: Iterable[int]) -> list[str]:
        """Names of the tensors that xs lead to and that calls and loops among `nodes` take.

        These have gradients whether the functions use them or not, as in TensorFlow; those of conditionals need not.
        """
        graph, taken = self.graph, dict[str, None]()
        for node in sorted(nodes):
            if graph.node_properties(node).op_def.record.calls in (Calls.IF, Calls.CASE):
                continue
            for source, port in self.edges.sources(node):
                if source in self.reached and self.carries(source, port):
                    taken[f"{graph.node_name(source)}:{port}"] = None
        return list(taken)

    def between(self, ys: Iterable[Output]) -> set[int]:
        """The nodes between xs and ys, those of loops one by one."""
        return self._back_from((node for node, _ in ys), frozenset())

    def gradient_call(self, node: int) -> NameAttrList | None:
        """The gradient function of the function that a node calls, if the library names one and the node no rule."""
        library = self.graph.functions
        if names_rule(self.graph.node_properties(node)):
            return None
        function = called_function(self.graph.node_properties(node), library)
        name = "" if function is None else library.gradient_of(function.name)
        return NameAttrList(name=name, attr=function.attr) if function is not None and name else None

    def leading_to(self, loop: DifferentiatedLoop, nodes: Iterable[int]) -> set[int]:
        """The nodes in a loop, inner loops included, between the xs and `nodes`, also across iterations."""
        return self._back_from(nodes, {variable.enter for variable in loop.variables})

    def _back_from(self, nodes: Iterable[int], entrances: Collection[int]) -> set[int]:
        """The nodes between the xs and `nodes`; the search stops at `entrances`."""
        queue = [node for node in nodes if node in self.reached]
        visited = set(queue)
        for node in queue:  # grows
            if node in entrances:
                continue
            for src, port in self.edges.sources(node):
                if src in self.reached and src not in visited and self.carries(src, port):
                    visited.add(src)
                    queue.append(src)
        return visited

    # Tensors

    def tensor(self, output: Output) -> Tensor:
        """The handle of an output of the graph; for a reference, the handle of its value."""
        node, port = output
        if node in self._made:
            return self._made[node][0][port]
        dtype = base_type(self.graph.node_properties(node).output_types[port])
        return Tensor(self.extension, self.graph.node_name(node), port, dtype)

    def output(self, tensor: Tensor) -> Output:
        """The output of a handle."""
        return self.extension.id_of(tensor.node), tensor.port

    def device(self, output: Output) -> str:
        """The device that the node of an output requests."""
        declared = self._made.get(output[0])
        return self.graph.requested_device(output[0]) if declared is None else declared[1]

    def constant(self, output: Output) -> tuple[Array, DataType] | None:
        """Value and type of an output of a Const, else None."""
        if output[0] in self._made:
            return None
        properties = self.graph.node_properties(output[0])
        if properties.op_def.name != "Const":
            return None
        return properties.attrs["value"], properties.output_types[0]

    def declare(
        self, operation: Operation, device: str, loop: DifferentiatedLoop | None, condition: BranchOutcomes
    ) -> None:
        """Registers a new node, so that its outputs can be used like those of the graph."""
        node = self.extension.id_of(operation.name)
        self._made[node] = operation, device
        self.liveness.declare(node, condition)
        if loop is not None:
            self.loops.innermost[node] = loop


def result_types(arguments: Iterable[DataType]) -> list[DataType]:
    """Types of the gradients of arguments; for a resource that is float, as in TensorFlow."""
    return [DataType.FLOAT if dtype is DataType.RESOURCE else dtype for dtype in arguments]
