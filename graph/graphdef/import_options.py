"""Options and results of `import_graph_def`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ..node import Node


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """How `import_graph_def` adds a GraphDef to a graph.

    `prefix` goes before every imported name. `uniquify_prefix` renames a prefix that is in use, `uniquify_names` single
    names. `input_map` replaces tensors of the GraphDef by tensors of the existing graph ("^name" maps a control input);
    `skip_mapped_nodes` leaves out nodes all of whose outputs are mapped. `control_dependencies` run before the imported
    nodes. `return_tensors` and `return_nodes` name the tensors and nodes to return. `default_device` is requested for
    nodes that request none.
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
    """Results of `import_graph_def`: (node, port) per return tensor, return nodes, map keys that match nothing."""

    return_tensors: list[tuple[Node, int]] = field(default_factory=list)
    return_nodes: list[Node] = field(default_factory=list)
    missing_unused_input_map_keys: list[str] = field(default_factory=list)
