"""Adds the nodes and edges of a GraphDef to a graph, in TensorFlow's order, on which generated names depend.

Nodes are created inputs first, lowest GraphDef index first. Each created node gets edges for its data inputs by port,
then for its control inputs sorted by name without duplicates. Edges that close a loop come after all others, and last
the edges between loose ends and source or sink. Everything is checked before the first node is added, so a failed
import leaves the graph unchanged.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence

import numpy as np

from ...errors import InvalidArgumentError, NotFoundError, PartitaError
from ..arrays import Numbers, first_rows
from ..columns import CONTROL_SLOT, Ids
from ..debug_info import debug_info_of
from ..display.progress import Progress, ProgressCallback, no_progress
from ..graph import Graph
from ..library.calls import is_call
from ..library.function_library import FunctionLibrary
from ..node import Node
from ..ops.properties import NodeProperties, PropertiesCache, split_entry
from ..port_table import distinct_properties
from ..protos import FunctionDefLibrary, GraphDebugInfo, LazyNodeDef, VersionDef
from ..tensor_id import parse_tensor_name
from ..validate import check_arity, check_attrs, check_op_deprecation
from ..versions import Versions
from .import_edges import NodeInputs, creation_order, edge_columns
from .import_inputs import InputTexts
from .import_names import NameChecks, check_node_names
from .import_options import ImportOptions, ImportResults
from .node_bytes import NodeBytes
from .sources import GraphSource, graph_bytes, parse_lazily, parsed

IMPORTING = "importing"
"""what progress calls it"""
_CHUNK = 4096  # nodes whose strings are decoded together
_SMALL = 512  # bytes: what nodes are beside names and inputs is remembered up to this size, larger ones differ mostly
CheckCall = Callable[[NodeProperties, FunctionLibrary], object]
"""checks the function that a node calls, and raises its errors"""


class Constructor:
    """One import: reads and checks everything, then adds it to the graph."""

    def __init__(
        self,
        graph_def: GraphSource,
        graph: Graph,
        options: ImportOptions,
        *,
        defaults: bool,
        check_call: CheckCall | None = None,
        on_progress: ProgressCallback = no_progress,
    ) -> None:
        """With `check_call` every node is validated against its op, and `check_call` checks its call of a function."""
        data = graph_bytes(graph_def)
        lazy = parse_lazily(data)
        self.debug_info = debug_info_of(lazy)
        parsed(GraphDebugInfo, self.debug_info)
        self.versions = Versions.of(parsed(VersionDef, lazy.versions))
        self.library = graph.functions.merged(parsed(FunctionDefLibrary, lazy.library))
        self._nodes = NodeBytes(lazy, data)
        self.graph = graph
        self.options = options
        self._check_call = check_call
        self._lookup = self.library.lookup
        self.cache = PropertiesCache(add_defaults=defaults, lookup=self._lookup)
        self._on_progress = on_progress
        self._devices = array("i")
        self._device_numbers: dict[str, int] = {}
        self._known: dict[bytes, tuple[NodeProperties, int]] = {}

    def run(self, *, internal_names: bool) -> ImportResults:
        """Imports the GraphDef; after an error the graph is unchanged. `internal_names` allows a leading "_"."""
        if self.options.return_nodes and self.options.skip_mapped_nodes:
            raise InvalidArgumentError("Requesting return_nodes with skip_mapped_nodes set is not currently supported")
        texts, properties = self._read_nodes()
        checks = NameChecks(self.graph, texts.names, self.options)
        check_node_names(texts, internal=internal_names)
        inputs = NodeInputs(texts, checks.input_map)
        kinds, kind_of = distinct_properties(properties)
        if self._check_call is not None:
            self._check_nodes(inputs, kinds, kind_of, self._check_call, checks.shown)
        inputs.check_types(kinds, kind_of, self.graph, checks.shown)
        order = creation_order(texts.names, properties, inputs)
        skipped = checks.skipped(inputs, properties)
        created = [i for i in order if i not in skipped] if skipped else order
        if skipped:
            checks.check_none_reads_skipped(created, inputs, skipped)
        return self._write(created, inputs, properties, checks)

    def _read_nodes(self) -> tuple[InputTexts, list[NodeProperties]]:
        """Names, inputs and properties of all nodes; read in chunks so that few strings are in memory at a time."""
        texts = InputTexts(keep_all=bool(self.options.input_map))
        properties: list[NodeProperties] = []
        known = self._known.get
        for first in range(0, len(self._nodes), _CHUNK):
            nodes = self._nodes.texts(first, first + _CHUNK)
            texts.add(nodes.names, nodes.inputs, nodes.counts)
            pairs = zip(nodes.names, nodes.rests, strict=True)
            shared, devices = zip(*[known(rest) or self._kind_of(name, rest) for name, rest in pairs], strict=True)
            properties += shared
            self._devices.extend(devices)
            self._on_progress(Progress(IMPORTING, len(properties), len(self._nodes), "nodes"))
        del self._nodes  # the bytes are larger than the graph, and edges need memory
        return texts, properties

    def _kind_of(self, name: str, rest: bytes) -> tuple[NodeProperties, int]:
        """The properties and the number of the device of a node, from what it is beside its name and inputs."""
        node = LazyNodeDef.FromString(rest)
        shared = self._properties_of(name, node)
        if node.experimental_type or node.experimental_debug_info:
            shared = self.cache.remarked(shared, _remarks(node.experimental_debug_info, node.experimental_type))
        kind = shared, self._device_numbers.setdefault(node.device, len(self._device_numbers))
        if len(rest) <= _SMALL:
            self._known[rest] = kind
        return kind

    def _properties_of(self, name: str, node: LazyNodeDef) -> NodeProperties:
        try:
            return self.cache.resolve(node.op, tuple(node.attr[:]))
        except (InvalidArgumentError, NotFoundError) as error:
            if not node.op:
                raise InvalidArgumentError(f"Node '{name}' does not specify an operation", node=name) from None
            if self._check_call is not None:
                self._check_unresolved(name, node.op, node.attr[:])
            raise error.located(node=name, op=node.op) from None

    def _check_unresolved(self, name: str, op: str, entries: list[bytes]) -> None:
        """Raises the validation error for attrs that determine no port types, which TensorFlow reports first."""
        signature = self._lookup(op)
        name = NameChecks(self.graph, [name], self.options).shown(name)
        check_attrs(name, signature, dict(signature.defaults) | dict(map(split_entry, entries)))

    def _check_nodes(
        self,
        inputs: NodeInputs,
        kinds: Sequence[NodeProperties],
        kind_of: Numbers,
        check_call: CheckCall,
        shown: Callable[[str], str],
    ) -> None:
        """Checks the first node of every kind against its op, and the number of inputs of all nodes."""
        num_data = inputs.num_data()
        wanted = np.array([len(kind.input_types) for kind in kinds], np.int64)[kind_of]
        is_first = np.zeros(len(kind_of), np.bool_)
        is_first[first_rows(kind_of, len(kinds))] = True
        for i in np.flatnonzero(is_first | (num_data != wanted)).tolist():
            name, kind = inputs.names[i], kinds[kind_of[i]]
            try:
                if is_first[i]:
                    self._check_kind(name, kind, inputs, check_call, shown)
                if num_data[i] != wanted[i]:
                    check_arity(shown(name), kind.op_def, kind.input_types, int(num_data[i]))
            except PartitaError as error:
                raise error.located(node=name, op=kind.op) from None

    def _check_kind(
        self,
        name: str,
        kind: NodeProperties,
        inputs: NodeInputs,
        check_call: CheckCall,
        shown: Callable[[str], str],
    ) -> None:
        check_op_deprecation(kind.op_def, self.versions.producer)
        check_attrs(shown(name), kind.op_def, kind.attrs)
        self._check_colocation(name, kind, inputs)
        if is_call(kind, self.library):
            check_call(kind, self.library)

    def _check_colocation(self, name: str, properties: NodeProperties, inputs: NodeInputs) -> None:
        if not self.options.validate_colocation_constraints:
            return
        for other in properties.colocated_with:
            if other not in inputs.index:
                raise InvalidArgumentError(f"Node '{name}' expects to be colocated with unknown node '{other}'")

    def _write(
        self,
        created: Sequence[int],
        inputs: NodeInputs,
        properties: list[NodeProperties],
        checks: NameChecks,
    ) -> ImportResults:
        graph, first = self.graph, self.graph.num_node_ids
        names = checks.final_names(created)
        rows = np.fromiter(created, np.int64, len(created))
        new_id = np.full(len(properties), -1, np.int32)
        new_id[rows] = np.arange(first, first + len(created), dtype=np.int32)
        renamed = checks.renamed_properties(properties)
        columns = edge_columns(new_id, new_id - first, inputs, checks.control_ids(inputs, created))
        results = self._results(new_id, inputs, properties, checks)
        interned = [graph.intern_device(name or self.options.default_device) for name in self._device_numbers]
        requested = np.array(interned, np.int32)[np.array(self._devices, np.int32)[rows]]
        graph.extend_nodes(names, list(map(renamed.__getitem__, created)), requested.tolist())
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
        for name in self.options.return_nodes:
            if name not in inputs.index:
                raise InvalidArgumentError(f"Requested return node '{name}' not found in graph def")
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
                f"Invalid return output {tensor.index} of node '{tensor.node}', which has {count} output(s)"
            )
        return Node(self.graph, int(new_id[index])), tensor.index


def _remarks(debug_info: bytes, full_type: bytes) -> bytes:
    return LazyNodeDef(experimental_debug_info=debug_info, experimental_type=full_type).SerializeToString()
