"""Priorities that the caller gives by the names of nodes: those of the timeline, "call/node" in a called function.

given        {"stage": 2, "stage/loss": 3}
stage        2                    the call itself
stage/loss   3
stage/mul    2                    has that of the call
update       0
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from ....errors import InvalidArgumentError
from ....graph.suggestions import suggestion
from ..playing.activation import PlayedCall, PlayedLoop

if TYPE_CHECKING:
    from ..bodies.scripts import Script
    from ..playing.activation import Activation

_MOST_NAMES = 100_000  # that a wrong name is compared with


class GivenPriorities:
    """The priorities of the rows of one step; a `Priorities`."""

    def __init__(self, given: Mapping[str, float], script: Script) -> None:
        """Raises InvalidArgumentError for a name that no node of the step has."""
        self._of_path: dict[str, dict[str, float]] = {}
        for name, priority in given.items():
            found = _located(script, name)
            if found is None:
                raise InvalidArgumentError(
                    f"order: no node of the step has the name {name!r}{suggestion(name, _names(script))}", node=name
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


def _located(script: Script, name: str) -> tuple[str, str] | None:
    """The path of calls to the node of a name, as its text, and its name there; None if there is no such node."""
    waiting = [(script, "", name)]
    while waiting:
        script, prefix, node = waiting.pop()
        names = script.whole.graph.names
        if node in names:
            return prefix, node
        calls = {names[number]: call for number, call in script.calls.items()}
        for end in (k for k, letter in enumerate(node) if letter == "/"):
            if node[:end] in calls:
                scripts = calls[node[:end]].scripts
                inside, rest = f"{prefix}{node[:end]}/", node[end + 1 :]
                waiting += [(called, inside, rest) for called in scripts if called is not None]
    return None


def _names(script: Script) -> list[str]:
    """The names of the nodes of a step, of very many the first ones."""
    names = []
    for name in _all_names(script):
        names.append(name)
        if len(names) == _MOST_NAMES:
            break
    return names


def _all_names(script: Script) -> Iterator[str]:
    waiting = [(script, "")]
    while waiting:
        script, prefix = waiting.pop()
        yield from (prefix + name for name in script.whole.graph.names)
        for number, call in script.calls.items():
            inside = f"{prefix}{script.whole.graph.names[number]}/"
            waiting += [(called, inside) for called in call.scripts if called is not None]
