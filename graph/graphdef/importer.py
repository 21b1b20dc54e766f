"""GraphDef -> Graph, and GraphDef into an existing Graph.

Flows in: a GraphDef (message, bytes, or anything that can serialise itself) and import options. Flows out: nodes and
edges in the order TensorFlow's graph constructor makes them, on which all generated names depend. Always holds:
everything is checked before the first node is added, so a failed import leaves the graph exactly as it was.

Node ids: nodes are created inputs first, lowest GraphDef index first. Edge ids: per created node its data inputs by
port, then its control inputs sorted by name, duplicates dropped; edges that close a loop come after all others; then
the edges that hang loose ends on source and sink.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import TypeVar

import numpy as np
from google.protobuf.message import Message

from ...errors import InvalidArgumentError, NotFoundError, PartitaError
from ..collector import collector_paused
from ..columns import CONTROL_SLOT
from ..graph import Graph, Ids, Versions
from ..library.calls import is_call
from ..library.function_library import FunctionLibrary
from ..node import Node
from ..ops.properties import NodeProperties, PropertiesCache, split_entry
from ..ops.registry import MIN_PRODUCER, PRODUCER, RELEASE
from ..protos import FunctionDefLibrary, GraphDef, LazyGraphDef, LazyNodeDef, VersionDef
from ..tensor_id import parse_tensor_name
from ..validate import check_arity, check_attrs, check_op_deprecation
from .import_edges import NodeInputs, creation_order, edge_columns
from .import_inputs import InputTexts
from .import_names import NameChecks, check_node_names, colocated_with
from .sources import GraphSource, graph_bytes

_CHUNK = 4096  # nodes whose strings are read together
Parsed = TypeVar("Parsed", bound=Message)


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """How `import_graph_def` joins a GraphDef to a graph.

    `prefix` goes before every imported name. `uniquify_prefix` renames a prefix that is taken, `uniquify_names`
    single names. `input_map` feeds tensors of the existing graph where the GraphDef names its own ("^name" maps a
    control input); `skip_mapped_nodes` leaves out nodes all of whose outputs are mapped. `control_dependencies` run
    before the import. `return_tensors` and `return_nodes` name what the caller wants handles of. `default_device` is
    requested for nodes that request none.
    """

    prefix: str = ""
    uniquify_names: bool = False
    uniquify_prefix: bool = False
    input_map: Mapping[str, str] = field(default_factory=dict)
    skip_mapped_nodes: bool = False
    control_dependencies: Sequence[str] = ()
    return_tensors: Sequence[str] = ()
    return_nodes: Sequence[str] = ()
    validate_colocation_constraints: bool = True
    default_device: str = ""


@dataclass(slots=True)
class ImportResults:
    """What `import_graph_def` made: (node, port) per return tensor, nodes, and map keys that fit nothing."""

    return_tensors: list[tuple[Node, int]] = field(default_factory=list)
    return_nodes: list[Node] = field(default_factory=list)
    missing_unused_input_map_keys: list[str] = field(default_factory=list)


def parse_lazily(graph_def: GraphSource) -> LazyGraphDef:
    """The GraphDef with its attrs left as bytes; InvalidArgumentError when it is none, and as `graph_bytes` raises."""
    return _parsed(LazyGraphDef, graph_bytes(graph_def))


def parse_graph_def(graph_def: GraphSource) -> GraphDef:
    """A GraphDef of the caller's own; raises as `parse_lazily`."""
    return _parsed(GraphDef, graph_bytes(graph_def))


def _parsed(kind: type[Parsed], data: bytes) -> Parsed:
    try:
        return kind.FromString(data)
    except Exception as error:  # protobuf's own DecodeError type differs between its implementations
        raise InvalidArgumentError("Invalid GraphDef: the bytes are damaged or of another format") from error


def check_versions(versions: VersionDef) -> None:
    """Raises InvalidArgumentError when this program must not read graphs of that version."""
    if versions.producer < MIN_PRODUCER:
        raise InvalidArgumentError(
            f"GraphDef producer version {versions.producer} below min producer {MIN_PRODUCER} supported by TensorFlow "
            f"{RELEASE}.  Please regenerate your graph."
        )
    if versions.min_consumer > PRODUCER:
        raise InvalidArgumentError(
            f"GraphDef min consumer version {versions.min_consumer} above current version {PRODUCER} for TensorFlow "
            f"{RELEASE}.  Please upgrade TensorFlow."
        )
    if PRODUCER in versions.bad_consumers:
        raise InvalidArgumentError(
            f"GraphDef disallows consumer version {PRODUCER}.  Please upgrade TensorFlow: this version is likely buggy."
        )


class _Constructor:
    """One import: reads and checks everything, then writes it to the graph in one go."""

    def __init__(
        self,
        graph_def: GraphSource,
        graph: Graph,
        options: ImportOptions,
        *,
        validate: bool,
        defaults: bool,
        on_read: Callable[[int], object] | None = None,
    ) -> None:
        lazy = parse_lazily(graph_def)
        self.versions = _parsed(VersionDef, lazy.versions)
        check_versions(self.versions)
        self.library = graph.functions.merged(_parsed(FunctionDefLibrary, lazy.library))
        self._nodes: Sequence[LazyNodeDef] = lazy.node
        self.graph = graph
        self.options = options
        self.validate = validate
        self._lookup = self.library.lookup
        self.cache = PropertiesCache(add_defaults=defaults, lookup=self._lookup)
        self._checked: set[int] = set()
        self._on_read = on_read
        self._devices = array("i")
        self._device_numbers: dict[str, int] = {}

    def run(self, *, internal_names: bool) -> ImportResults:
        """Imports; on any error the graph is untouched."""
        texts, properties = self._read_nodes()
        check_node_names(texts.names, internal=internal_names)
        checks = NameChecks(self.graph, texts.names, self.options)
        inputs = NodeInputs(texts, checks.input_map)
        if self.validate:
            self._check_nodes(inputs, properties)
        inputs.check_types(properties, self.graph)
        order = creation_order(texts.names, properties, inputs)
        skipped = checks.skipped(inputs, properties)
        created = [i for i in order if i not in skipped] if skipped else order
        return self._write(created, inputs, properties, checks)

    def _read_nodes(self) -> tuple[InputTexts, list[NodeProperties]]:
        """Names, inputs and properties of all nodes; a chunk at a time, so that strings are soon forgotten."""
        texts = InputTexts(keep_all=bool(self.options.input_map))
        properties: list[NodeProperties] = []
        for first in range(0, len(self._nodes), _CHUNK):
            nodes = self._nodes[first : first + _CHUNK]
            inputs = [node.input[:] for node in nodes]
            texts.add([node.name for node in nodes], list(chain.from_iterable(inputs)), map(len, inputs))
            properties += self._properties_of(nodes)
            numbers = self._device_numbers
            self._devices.extend(numbers.setdefault(node.device, len(numbers)) for node in nodes)
            if self._on_read is not None:
                self._on_read(len(nodes))
        self._nodes = ()  # the message, larger than the graph, is not needed beside what edges take
        return texts, properties

    def _properties_of(self, nodes: Sequence[LazyNodeDef]) -> Iterator[NodeProperties]:
        resolve = self.cache.resolve
        for node in nodes:
            try:
                yield resolve(node.op, tuple(node.attr[:]))
            except (InvalidArgumentError, NotFoundError) as error:
                name = node.name
                if not node.op:
                    raise InvalidArgumentError(f"Node {name!r} does not specify an operation", node=name) from None
                if self.validate:
                    self._check_unresolved(name, node.op, node.attr[:])
                raise error.located(node=name, op=node.op) from None

    def _check_unresolved(self, name: str, op: str, entries: list[bytes]) -> None:
        """Raises what validation says about attrs that give no port types: it comes before what resolving them says."""
        signature = self._lookup(op)
        check_attrs(name, signature, dict(signature.defaults) | dict(map(split_entry, entries)))

    def _check_nodes(self, inputs: NodeInputs, properties: list[NodeProperties]) -> None:
        producer = self.versions.producer
        num_data = inputs.num_data().tolist()
        for i, shared in enumerate(properties):
            name = inputs.names[i]
            try:
                if id(shared) not in self._checked:
                    check_op_deprecation(shared.op_def, producer)
                    check_attrs(name, shared.op_def, shared.attrs)
                    self._check_colocation(name, shared, inputs)
                    self._check_call(shared)
                    self._checked.add(id(shared))
                if num_data[i] != len(shared.input_types):
                    check_arity(name, shared.op_def, shared.input_types, num_data[i])
            except PartitaError as error:
                raise error.located(node=name, op=shared.op) from None

    def _check_call(self, shared: NodeProperties) -> None:
        if is_call(shared, self.library):
            from ..functions.checks import check_call  # the body of a function is imported, so not below this module

            check_call(shared, self.library)

    def _check_colocation(self, name: str, properties: NodeProperties, inputs: NodeInputs) -> None:
        if not self.options.validate_colocation_constraints:
            return
        for other in colocated_with(properties):
            if other not in inputs.index:
                raise InvalidArgumentError(f"Node {name!r} expects to be colocated with unknown node {other!r}")

    def _write(
        self,
        created: Sequence[int],
        inputs: NodeInputs,
        properties: list[NodeProperties],
        checks: NameChecks,
    ) -> ImportResults:
        graph, first = self.graph, self.graph.num_node_ids
        names = checks.final_names(created)
        new_id = np.full(len(properties), -1, np.int32)
        new_id[created] = np.arange(first, first + len(created), dtype=np.int32)
        renamed = checks.renamed_properties(properties)
        columns = edge_columns(new_id, new_id - first, inputs, checks.control_ids(inputs, created))
        results = self._results(new_id, inputs, properties, checks)
        interned = [graph.intern_device(name or self.options.default_device) for name in self._device_numbers]
        requested = np.array(interned, np.int32)[np.array(self._devices, np.int32)[created]]
        graph.extend_nodes(names, [renamed[i] for i in created], requested.tolist())
        graph.extend_edges(*columns)
        graph.fix_source_and_sink_edges()
        graph.functions = self.library
        return results

    def _results(
        self, new_id: Ids, inputs: NodeInputs, properties: list[NodeProperties], checks: NameChecks
    ) -> ImportResults:
        results = ImportResults(missing_unused_input_map_keys=checks.missing_unused_keys(inputs, properties))
        for text in self.options.return_tensors:
            results.return_tensors.append(self._return_tensor(text, new_id, inputs, properties, checks))
        if self.options.return_nodes and self.options.skip_mapped_nodes:
            raise InvalidArgumentError("Requesting return_nodes with skip_mapped_nodes set is not currently supported")
        for name in self.options.return_nodes:
            if name not in inputs.index:
                raise InvalidArgumentError(f"Requested return node {name!r} not found in graph def")
            results.return_nodes.append(Node(self.graph, int(new_id[inputs.index[name]])))
        return results

    def _return_tensor(
        self,
        text: str,
        new_id: Ids,
        inputs: NodeInputs,
        properties: list[NodeProperties],
        checks: NameChecks,
    ) -> tuple[Node, int]:
        tensor = parse_tensor_name(text)
        mapped = checks.input_map.get(tensor)
        if mapped is not None:
            return Node(self.graph, mapped[0]), mapped[1]
        index = inputs.index.get(tensor.node)
        if index is None:
            raise InvalidArgumentError(f"Requested return tensor '{tensor}' not found in graph def")
        count = len(properties[index].output_types)
        if tensor.index != CONTROL_SLOT and not 0 <= tensor.index < count:
            raise InvalidArgumentError(
                f"Invalid return output {tensor.index} of node {tensor.node!r}, which has {count} output(s)"
            )
        return Node(self.graph, int(new_id[index])), tensor.index


def graph_def_to_graph(
    graph_def: GraphSource,
    *,
    add_default_attrs: bool = False,
    allow_internal_names: bool = False,
    expect_device: bool = False,
    library: FunctionLibrary | None = None,
    on_read: Callable[[int], object] | None = None,
) -> Graph:
    """A new graph from a GraphDef, as a session or a worker makes it: no attr is checked that building does not need.

    What may stand for a GraphDef is said in `sources`. `add_default_attrs` fills in attrs left out;
    `allow_internal_names` accepts names that begin with "_"; `expect_device` wants a device on every node and makes it
    the assigned one; `library` holds functions that nodes may call besides those of the GraphDef; `on_read` is told of
    some thousand nodes at a time how many more have been read, in the thread that reads. Raises InvalidArgumentError
    (names, inputs, cycles, types, versions) or NotFoundError (unknown ops, attrs that decide port types).
    """
    with collector_paused():
        graph = Graph()
        if library is not None:
            graph.functions = library
        constructor = _Constructor(
            graph_def, graph, ImportOptions(), validate=False, defaults=add_default_attrs, on_read=on_read
        )
        constructor.run(internal_names=allow_internal_names)
        versions = constructor.versions
        graph.versions = Versions(versions.producer, versions.min_consumer, tuple(versions.bad_consumers))
        if expect_device:
            _assign_requested(graph)
        return graph


def _assign_requested(graph: Graph) -> None:
    for node in graph.op_nodes():
        if not node.requested_device:
            raise InvalidArgumentError(f"Node {node.name!r} is missing a device specification", node=node.name)
    graph.assign_devices(graph.requested_device_indices())


def import_graph_def(graph_def: GraphSource, graph: Graph, options: ImportOptions | None = None) -> ImportResults:
    """Adds a GraphDef to `graph`: default attrs filled in, every node validated against its op, versions merged.

    Shapes that are written down as `_output_shapes` must agree with the graph, and are then left out.

    Raises InvalidArgumentError, NotFoundError or UnimplementedError (removed ops), and then `graph` is as it was.
    """
    options = options or ImportOptions()
    data = graph_bytes(graph_def)
    with collector_paused():
        if b"_output_shapes" in data:
            data = _with_shapes_checked(data, graph, options)
        constructor = _Constructor(data, graph, options, validate=True, defaults=True)
        results = constructor.run(internal_names=False)
    theirs, ours = constructor.versions, graph.versions
    graph.versions = Versions(
        min(ours.producer, theirs.producer),
        max(ours.min_consumer, theirs.min_consumer),
        tuple(sorted({*ours.bad_consumers, *theirs.bad_consumers})),
    )
    return results


def _with_shapes_checked(data: bytes, graph: Graph, options: ImportOptions) -> bytes:
    """The GraphDef without the shapes written in it, which a trial import has shown to agree with `graph`."""
    # Here, since shape inference reads functions, whose bodies are imported.
    from ..analysis.import_shapes import check_output_shapes, without_output_shapes

    rest = without_output_shapes(parse_lazily(data))
    if rest is None:
        return data
    trial, first = graph.copy(), graph.num_node_ids
    _Constructor(data, trial, options, validate=True, defaults=True).run(internal_names=False)
    check_output_shapes(trial, first)
    return rest
