"""Passes by name: built in, registered by a program, or of installed packages.

A pass rewrites the graph of a session or command before it is placed, or each partition after the graph was cut:

    register_pass(GraphPass("spread", "nodes of each name scope on a device of their own", spread))
    open_session(graph, "cpu:4", passes="inline,spread")

An installed package adds a pass by an entry point in its pyproject.toml, whose value is the `GraphPass` or
`PartitionPass`. It is loaded when its name is first asked for:

    [project.entry-points."partita.passes"]
    spread = "my_package:SPREAD"
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ... import entry_points
from ...errors import AlreadyExistsError, InvalidArgumentError
from ..graph import Graph
from .names import GROUP

if TYPE_CHECKING:
    from .optimising.constant_folding import Evaluator
    from .optimising.foldable import ShapesByNode


@dataclass(frozen=True, slots=True)
class GraphContext:
    """What a pass over a whole graph may know: the full names of the devices that the graph can be placed on.

    With `lowers_control_flow` conditionals and loops are lowered to plain nodes, by the pass that lowers.
    """

    devices: tuple[str, ...] = ()
    lowers_control_flow: bool = True


@dataclass(frozen=True, slots=True)
class PartitionContext:
    """What a pass over a partition may use: an evaluator of constant nodes, and the largest constant to make.

    `shapes` has known shapes of outputs by node name.
    """

    evaluator: Evaluator
    max_constant_bytes: int
    shapes: ShapesByNode


@dataclass(frozen=True, slots=True)
class GraphPass:
    """Rewrites the imported graph; those after `inline` get the lowered one. `summary` describes it in a few words.

    `run` leaves its argument alone. The graph that it returns is placed, so a device is requested, not assigned.
    """

    name: str
    summary: str
    run: Callable[[Graph, GraphContext], Graph]


@dataclass(frozen=True, slots=True)
class PartitionPass:
    """Rewrites the graph of one device; all such passes are repeated until none of them changes anything.

    `run` leaves its argument alone, returns the same object if there is nothing to change, and keeps the transfers,
    arguments, results and stateful nodes.
    """

    name: str
    summary: str
    run: Callable[[Graph, PartitionContext], Graph]


Pass = GraphPass | PartitionPass

_PASSES: dict[str, Pass] = {}


def register_pass(new: Pass) -> None:
    """Adds a pass; AlreadyExistsError when there is one of that name."""
    if new.name in _built_in() or new.name in _PASSES:
        raise AlreadyExistsError(f"there is a pass {new.name!r} ({find_pass(new.name).summary}); choose another name")
    _PASSES[new.name] = new


def find_pass(name: str) -> Pass:
    """The pass of a name; InvalidArgumentError, listing all names, when there is none."""
    known = _built_in().get(name) or _PASSES.get(name) or _installed(name)
    if known is None:
        raise InvalidArgumentError(f"there is no pass {name!r}; there are {', '.join(pass_names())}")
    return known


def pass_names() -> list[str]:
    """The names of all passes, those of installed packages last."""
    return list(dict.fromkeys([*_built_in(), *_PASSES, *entry_points.names_of(GROUP)]))


def graph_passes(names: Sequence[str]) -> list[GraphPass]:
    """Those of some passes that rewrite whole graphs, in order; raises as `find_pass`."""
    return [found for found in map(find_pass, names) if isinstance(found, GraphPass)]


def partition_passes(names: Sequence[str]) -> list[PartitionPass]:
    """Those of some passes that rewrite partitions, in order; raises as `find_pass`."""
    return [found for found in map(find_pass, names) if isinstance(found, PartitionPass)]


def _built_in() -> dict[str, Pass]:
    from .built_in import PASSES  # it imports this module

    return PASSES


def _installed(name: str) -> Pass | None:
    """The pass of an installed package, which is registered; InvalidArgumentError if it is none."""
    found = entry_points.loaded(GROUP, name, "pass")
    if found is None:
        return None
    if not isinstance(found.value, GraphPass | PartitionPass) or found.value.name != name:
        raise InvalidArgumentError(
            f"pass {name!r}, {found.place!r}, is {found.value!r}; make it a GraphPass or PartitionPass of that name"
        )
    _PASSES[name] = found.value
    return found.value
