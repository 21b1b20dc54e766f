"""The reference executor: it runs a graph node by node and defines what the faster ways must compute.

    y = -x + 1, feeds [2.0]      ready: one, _arg_x      run one -> [1.0], _arg_x -> [2.0]      ready: neg
                                 run neg -> [-2.0]       ready: y      run y -> [-1.0]          results: {0: -1.0}

It picks a ready token, computes its node, and passes the outputs on by the rules of `tokens/propagation`. A node with a
dead input is not computed, but its dead outputs are passed on; Send and Recv run even then.

In a graph without races the fetched values do not depend on the order in which `choose` picks ready nodes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import InternalError, InvalidArgumentError, UnimplementedError, of_kernel
from ..plans.binding import Binder, check_complete
from ..plans.instructions import DEAD, passed_on
from ..plans.output_checks import check_received
from ..plans.roles import Role
from .interpretation import Interpretation
from .tokens.propagation import Propagation
from .tokens.results import LiveResults, when

if TYPE_CHECKING:
    from ...graph.graph import Graph
    from .tokens.frames import Token

Choose = Callable[[int], int]
"""given the number of ready nodes, the index of the one to run next"""


class Reference(Propagation):
    """One run of a set of partitions, or of one uncut graph.

    `table` has tensors that were sent and not yet received, by key, `waiting` receives without a tensor yet.
    """

    def __init__(
        self,
        parts: Sequence[Interpretation],
        feeds: Sequence[Any],
        choose: Choose | None = None,
        *,
        keeps_last: bool = False,
    ) -> None:
        """`choose` and `keeps_last` are as in `run_reference`."""
        super().__init__(parts)
        self.feeds = feeds
        self.results = LiveResults(keeps_last)
        self.ready: deque[Token] = deque()
        self.choose = choose
        self.table: dict[str, deque[Any]] = {}
        self.waiting: dict[str, deque[Token]] = {}
        self._begin()

    def run(self, limit: int | None = None) -> bool:
        """Runs at most `limit` nodes. Returns whether ready nodes are left.

        Raises the error of the first node that fails, and InternalError for a receive whose tensor is never sent.
        """
        while self.ready and limit != 0:
            limit = None if limit is None else limit - 1
            self._process(self._next())
        if self.ready:
            return True
        if self.waiting and not self._is_waiting_for_calls:
            raise InternalError(f"nobody sends {next(iter(self.waiting))!r}; the partitions do not belong together")
        return False

    @property
    def _is_waiting_for_calls(self) -> bool:
        """Whether deferred nodes run."""
        return False

    def _next(self) -> Token:
        if self.choose is not None:
            self.ready.rotate(-self.choose(len(self.ready)))
        return self.ready.popleft()

    def _make_ready(self, token: Token) -> None:
        super()._make_ready(token)
        self.ready.append(token)

    # One node

    def _process(self, token: Token) -> None:
        part, node = self.parts[token.partition], token.node
        inputs = self._inputs(token, part)
        role = part.roles[node]
        if role is Role.RECV:
            self._receive(token, part)
        elif role is Role.SEND:
            value = DEAD if token.is_dead else passed_on(inputs[0])
            self._send(part.key(node, token.frame.name, token.iteration), value)
            self._propagate(token, [])
        elif token.is_dead:
            self._propagate(token, [DEAD] * part.num_outputs(node))
        elif node in part.deferred:
            self._launch(token, part, inputs)
        else:
            self._propagate(token, self._compute(part, token, inputs))

    def _launch(self, token: Token, part: Interpretation, _inputs: list[Any]) -> None:
        """Starts a deferred node. Overridden where there are actors; without, it raises UnimplementedError."""
        name, op = part.names[token.node], part.properties[token.node].op
        raise UnimplementedError(
            f"node {name!r} ({op}) waits for something; run the graph in a session", node=name, op=op
        )

    def _compute(self, part: Interpretation, token: Token, inputs: list[Any]) -> list[Any]:
        """Computes the outputs of a live node; an error is located."""
        node = token.node
        op = part.properties[node].op
        try:
            if part.roles[node] is Role.ARG:
                return [self._argument(part, node)]
            if part.roles[node] is Role.RETVAL:
                at = when(token.frame, token.iteration)
                self.results.store(part.properties[node].attrs["index"], at, passed_on(inputs[0]))
                return []
            return part.outputs(node, inputs)
        except Exception as error:  # noqa: BLE001 - a kernel may raise anything
            located = of_kernel(op, error).located(node=part.names[node], op=op, device=part.devices[node])
            raise located from located.__cause__

    def _argument(self, part: Interpretation, node: int) -> Any:
        index = part.properties[node].attrs["index"]
        if not 0 <= index < len(self.feeds):
            raise InvalidArgumentError(f"GetArg {index} is not within [0, {len(self.feeds)})")
        return self.feeds[index]

    def _send(self, key: str, value: Any) -> None:
        if self.waiting.get(key):
            receiver = self.waiting[key].popleft()
            if not self.waiting[key]:
                del self.waiting[key]
            self._deliver(receiver, value)
        else:
            self.table.setdefault(key, deque()).append(value)

    def _receive(self, token: Token, part: Interpretation) -> None:
        key = part.key(token.node, token.frame.name, token.iteration)
        if self.table.get(key):
            value = self.table[key].popleft()
            if not self.table[key]:
                del self.table[key]
            self._deliver(token, value)
        else:
            self.waiting.setdefault(key, deque()).append(token)

    def _deliver(self, token: Token, value: Any) -> None:
        """Gives a receive its tensor; InternalError, located, for a tensor of another type."""
        part, node = self.parts[token.partition], token.node
        if token.is_dead or value is DEAD:
            self._propagate(token, [DEAD])
            return
        try:
            check_received(value, part.properties[node].output_types[0])
        except InternalError as error:
            raise error.located(node=part.names[node], op=part.properties[node].op, device=part.devices[node]) from None
        self._propagate(token, [value])


def run_reference(
    partitions: Iterable[Graph],
    binders: Mapping[str, Binder],
    feeds: Sequence[Any],
    num_fetches: int,
    choose: Choose | None = None,
    *,
    keeps_last: bool = False,
) -> list[Any]:
    """Runs the graphs of all partitions, or a single uncut one, to the end; a fetch without value is DEAD.

    `choose` picks the next ready node; without it they run first in, first out. With `keeps_last` a fetch in a loop has
    its last live value, as in a callable. Raises as `Reference.run`.
    """
    parts = [Interpretation(graph, binders) for graph in partitions]
    check_complete(binders.values())
    run = Reference(parts, feeds, choose, keeps_last=keeps_last)
    with np.errstate(all="ignore"):
        run.run()
    return [run.results.get(index) for index in range(num_fetches)]
