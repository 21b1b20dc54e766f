"""Names at import: which are legal or in use, which are mapped to the graph, how others are renamed.

Colocation constraints are renamed like the nodes. Names of the result are unique unless the graph had duplicates
before.
"""

from __future__ import annotations

import re
from collections.abc import Container, Mapping, Sequence

from ...errors import InvalidArgumentError
from ..columns import CONTROL_SLOT
from ..graph import Graph
from ..ops.properties import NodeProperties
from ..protos import AttrValue
from ..tensor_id import TensorId, parse_tensor_name
from ..validate import NODE_NAME
from .import_edges import NodeInputs
from .import_inputs import InputTexts, NamedNodes
from .import_options import ImportOptions

_INTERNAL_NAME = f"_[A-Za-z0-9_.\\-/]*(?:>{NODE_NAME})?|{NODE_NAME}"
_LEGAL, _LEGAL_INTERNAL = (re.compile(name).fullmatch for name in (NODE_NAME, _INTERNAL_NAME))
_LINES, _LINES_INTERNAL = (re.compile(f"(?:(?:{name})\n)*+").fullmatch for name in (NODE_NAME, _INTERNAL_NAME))
_COLOCATION = "_class"
_LOC = b"loc:@"


def check_node_names(nodes: NamedNodes | InputTexts | NodeInputs, *, internal: bool) -> None:
    """Raises InvalidArgumentError for the first illegal or repeated name; `internal` allows a leading "_"."""
    names = nodes.names
    if len(nodes.index) == len(names) and _all_legal(names, internal=internal):
        return  # as nearly always; the loop is for the first name that is repeated or illegal
    legal = _LEGAL_INTERNAL if internal else _LEGAL
    seen: set[str] = set()
    for name in names:
        if not legal(name):
            raise InvalidArgumentError(f"Node '{name}': Node name contains invalid characters", node=name)
        if name in seen:
            raise InvalidArgumentError(f"Node '{name}' is not unique", node=name)
        seen.add(name)


def _all_legal(names: Sequence[str], *, internal: bool) -> bool:
    """Whether every name is legal, by one match of all of them, each on a line of its own."""
    lines = "\n".join(names) + "\n" if names else ""
    return lines.count("\n") == len(names) and (_LINES_INTERNAL if internal else _LINES)(lines) is not None


def _taken(name: str) -> InvalidArgumentError:
    return InvalidArgumentError(f"Node name '{name}' already exists in the Graph", node=name)


def _prefixes(name: str) -> list[str]:
    return [name[:i] for i, character in enumerate(name) if character == "/"]


class NameChecks:
    """The names of one import, checked against the graph that it is added to."""

    def __init__(self, graph: Graph, names: list[str], options: ImportOptions) -> None:
        self._graph = graph
        self._names = names
        self._options = options
        self.input_map: dict[TensorId, tuple[int, int]] = {}
        self._plain = options.prefix == "" and graph.num_nodes == 2 and not options.input_map
        self._taken: set[str] = set()
        self._taken_prefixes: set[str] = set()
        self._renamed: dict[str, str] = {}
        if not self._plain:
            self._read_graph()
        self._prefix = self._final_prefix() if options.prefix else ""
        if not (self._plain or options.prefix or options.uniquify_names):
            for name in filter(self._is_taken, names):  # before all other checks, and for skipped nodes too
                raise _taken(name)
        self._map_inputs()
        self._control = list(dict.fromkeys(map(self._existing, options.control_dependencies)))

    def _read_graph(self) -> None:
        for name in self._graph.names():
            if name is not None:
                self._taken.add(name)
                self._taken_prefixes.update(_prefixes(name))

    def _is_taken(self, name: str) -> bool:
        return name in self._taken or name in self._taken_prefixes

    def _final_prefix(self) -> str:
        prefix = self._options.prefix.removesuffix("/")
        if not _LEGAL(prefix):
            raise InvalidArgumentError(f"Imported node name prefix '{prefix}/' would lead to invalid node names")
        if self._options.uniquify_prefix and self._is_taken(prefix):
            prefix = self._unique(prefix, set())
        return prefix + "/"

    def _unique(self, name: str, imported: set[str]) -> str:
        candidate, count = name, 0
        while self._is_taken(candidate) or (count > 0 and candidate in imported):
            count += 1
            candidate = f"{name}_{count}"
        return candidate

    def _existing(self, text: str) -> TensorId:
        tensor = parse_tensor_name(text if text.startswith("^") else "^" + text)
        if self._graph.find_node(tensor.node) is None:
            raise InvalidArgumentError(f"node '{tensor.node}' in control_dependencies does not exist in graph")
        return tensor

    def _map_inputs(self) -> None:
        for key_text, value_text in self._options.input_map.items():
            key, value = parse_tensor_name(key_text), parse_tensor_name(value_text)
            if (key.index == CONTROL_SLOT) != (value.index == CONTROL_SLOT):
                raise InvalidArgumentError(f"input_map entry {key}->{value} between control edge and non-control edge")
            node = self._graph.find_node(value.node)
            if node is None:
                raise InvalidArgumentError(
                    f"node '{value.node}' in input_map does not exist in graph (input_map entry: {key}->{value})"
                )
            if list(self._graph.names()).count(value.node) > 1:
                raise InvalidArgumentError(
                    f"cannot resolve input_map because multiple nodes exist with name '{value.node}'"
                )
            self.input_map[key] = (node.id, value.index)

    def shown(self, name: str) -> str:
        """The name that a node gets, for a message about it before names are final."""
        name = self._prefix + name
        rename = self._options.uniquify_names and not (self._prefix and self._options.uniquify_prefix)
        return self._unique(name, set()) if rename else name

    def skipped(self, inputs: NodeInputs, properties: Sequence[NodeProperties]) -> frozenset[int]:
        """Indices of nodes all of whose output arguments are mapped (of lists the first output, as in TensorFlow)."""
        if not self._options.skip_mapped_nodes:
            return frozenset()
        indices = {inputs.index[key.node] for key in self.input_map if key.node in inputs.index}
        return frozenset(
            i
            for i in indices
            if all(
                TensorId(inputs.names[i], port) in self.input_map
                for port in range(len(properties[i].op_def.output_args))
            )
        )

    def check_none_reads_skipped(self, created: Sequence[int], inputs: NodeInputs, skipped: Container[int]) -> None:
        """Raises InvalidArgumentError for a node with an input, a control input say, from a node that is left out."""
        for i in created:
            if any(source in skipped for source, _ in inputs.sources_of(i)):
                name = inputs.names[i]
                raise InvalidArgumentError(
                    f"Node '{name}' had a back edge, but only Merge nodes can have back edges.", node=name
                )

    def final_names(self, created: Sequence[int]) -> list[str]:
        """The name of each created node, prefixed and made unique as the options say.

        Raises InvalidArgumentError for a name that is in use and may not be changed.
        """
        if self._plain and len(created) == len(self._names):
            return [self._names[i] for i in created]
        imported = {self._prefix + name for name in self._names}
        imported |= {prefix for name in imported for prefix in _prefixes(name)}
        rename = self._options.uniquify_names and not (self._prefix and self._options.uniquify_prefix)
        final = []
        for i in created:
            name = self._prefix + self._names[i]
            if rename and self._is_taken(name):
                name = self._unique(name, imported)
                self._taken.add(name)
            elif not rename and self._is_taken(name):
                raise _taken(name)
            self._renamed[self._names[i]] = name
            final.append(name)
        return final

    def renamed_properties(self, properties: Sequence[NodeProperties]) -> Sequence[NodeProperties]:
        """Properties whose colocation constraints have the final names of nodes.

        Raises InvalidArgumentError for a constraint on a node that the GraphDef does not have.
        """
        if self._plain:
            return properties
        cache: dict[int, NodeProperties] = {}
        return [cache.get(id(p)) or cache.setdefault(id(p), self._with_final_groups(p)) for p in properties]

    def _with_final_groups(self, properties: NodeProperties) -> NodeProperties:
        groups = properties.colocated_with
        if not groups:
            return properties
        value = AttrValue()
        value.list.s.extend(_LOC + self._renamed.get(group, self._prefix + group).encode() for group in groups)
        return properties.with_attr(_COLOCATION, value)

    def control_ids(self, inputs: NodeInputs, created: Sequence[int]) -> Mapping[int, list[int]]:
        """Ids of the existing nodes that must run before each imported node that has no imported inputs."""
        if not self._control:
            return {}
        ids = [node.id for tensor in self._control if (node := self._graph.find_node(tensor.node)) is not None]
        position = {i: at for at, i in enumerate(created)}
        before = {}
        for i in created:
            sources = inputs.sources_of(i)
            if not any(s >= 0 and position.get(s, len(position)) < position[i] for s, _ in sources):
                present = {~s for s, port in sources if port == CONTROL_SLOT and s < 0}
                before[i] = [node_id for node_id in ids if node_id not in present]
        return before

    def missing_unused_keys(self, inputs: NodeInputs, properties: Sequence[NodeProperties]) -> list[str]:
        """Keys of the input map that no node used and that name no tensor of the GraphDef."""
        missing = []
        for key in self.input_map:
            if key in inputs.used_map_keys:
                continue
            index = inputs.index.get(key.node)
            if index is None or key.index >= len(properties[index].output_types):
                missing.append(str(key))
        return missing
