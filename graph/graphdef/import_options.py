"""How a GraphDef joins a graph that is there, and what the caller gets hold of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ..node import Node


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
