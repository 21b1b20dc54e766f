"""Priorities that the caller gives by the names of nodes: those of the timeline, "call/node" in a called function.

given        {"stage": 2, "stage/loss": 3}
stage        2                    the call itself
stage/loss   3
stage/mul    2                    has that of the call
update       0
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from ....errors import InvalidArgumentError
from ....graph.suggestions import suggestion
from ..playing.activation import PlayedCall, PlayedLoop

if TYPE_CHECKING:
    from ..bodies.scripts import Call, Script
    from ..playing.activation import Activation

_MOST_NAMES = 100_000  # that a wrong name is compared with


class GivenPriorities:
    """The priorities of the rows of one step; a `Priorities`."""

    def __init__(self, given: Mapping[str, float], script: Script) -> None:
        """Raises InvalidArgumentError for a name that no node of the step has."""
        self._of_path: dict[str, dict[str, float]] = {}
        nodes = _NodeNames(script)
        for name, priority in given.items():
            found = nodes.located(name)
            if found is None:
                raise InvalidArgumentError(
                    f"order: no node of the step has the name {name!r}{suggestion(name, nodes.some())}", node=name
                )
            prefix, node = found
            self._of_path.setdefault(prefix, {})[node] = priority
        self._around: dict[Activation, float] = {}
        self._own: dict[Activation, Mapping[str, float]] = {}

    def of(self, activation: Activation) -> Sequence[float]:
        """By node: what is given for it, or else for the call around it."""
        run = activation.run
        around = 0.0
        if isinstance(run, PlayedCall):
            caller = run.caller
            name = caller.body.graph.names[run.node]
            around = self._own[caller].get(name, self._around[caller])
        elif isinstance(run, PlayedLoop):
            around = self._around[run.parent]
        own = self._own[activation] = self._of_path.get(activation.prefix, {})
        self._around[activation] = around
        if not own:
            return [around] * len(activation.body)
        return [own.get(name, around) for name in activation.body.graph.names]


class _NodeNames:
    """The names of the nodes of a step, those in called functions with the path of calls."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._nodes: dict[Script, frozenset[str]] = {}
        self._calls: dict[Script, dict[str, Call]] = {}

    def located(self, name: str) -> tuple[str, str] | None:
        """The path of calls to a node, as its text, and its name there; None if no node has the name."""
        waiting = [(self._script, "", name)]
        while waiting:
            script, prefix, node = waiting.pop()
            if node in self._nodes_of(script):
                return prefix, node
            calls = self._calls_of(script) if "/" in node else {}
            for end in (k for k, letter in enumerate(node) if letter == "/"):
                if node[:end] in calls:
                    inside, rest = f"{prefix}{node[:end]}/", node[end + 1 :]
                    waiting += [(called, inside, rest) for called in calls[node[:end]].scripts if called is not None]
        return None

    def some(self) -> list[str]:
        """The names, of very many the first ones."""
        return list(islice(self._all(), _MOST_NAMES))

    def _nodes_of(self, script: Script) -> frozenset[str]:
        if script not in self._nodes:
            self._nodes[script] = frozenset(script.whole.graph.names)
        return self._nodes[script]

    def _calls_of(self, script: Script) -> Mapping[str, Call]:
        if script not in self._calls:
            names = script.whole.graph.names
            self._calls[script] = {names[number]: call for number, call in script.calls.items()}
        return self._calls[script]

    def _all(self) -> Iterator[str]:
        waiting = [(self._script, "")]
        while waiting:
            script, prefix = waiting.pop()
            yield from (prefix + name for name in script.whole.graph.names)
            for number, call in script.calls.items():
                inside = f"{prefix}{script.whole.graph.names[number]}/"
                waiting += [(called, inside) for called in call.scripts if called is not None]
