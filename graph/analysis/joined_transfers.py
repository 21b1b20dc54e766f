"""The sends and receives of several graphs: their routes, and the send of every receive, as columns by joint number.

Most transfers are rows of a table that the partitions of one cut share. Both ends have the row, so they are matched
without a look at names. A node that came from a GraphDef has its transfer in its attrs; these ends meet by key.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ...errors import InvalidArgumentError
from ..arrays import Flags, Numbers
from ..columns import Ids
from ..ops.properties import NodeProperties
from .transfers import TransferredTensor, TransferRoute, TransferTable, transfer_of

_LISTED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferEnds:
    """What transfers depend on, by joint number: `row` is the row in the table of the node's place, -1 for none."""

    tables: Sequence[TransferTable | None]
    names: Sequence[str]
    kinds: Sequence[NodeProperties]
    kind_of: Ids
    place: Ids
    row: Ids
    is_send: Flags
    is_recv: Flags


class JoinedTransfers:
    """Columns by joint number, -1 for nodes that are no transfers.

    `sender[n]` is the send of receive `n`, -1 also where the client sends; `route_of[n]` is an index into `routes`.
    `from_attrs` has the transfers that are in no table, those of the client among them.
    """

    def __init__(self, ends: TransferEnds) -> None:
        """Raises InvalidArgumentError if nothing sends what a receive waits for."""
        self._ends = ends
        self.sender: Ids = np.full(len(ends.names), -1, np.int32)
        self.from_attrs: dict[int, TransferredTensor] = {}
        self._tables: list[TransferTable] = []
        self._nodes = self._rows = np.zeros(0, np.int64)
        if (ends.is_send | ends.is_recv).any():
            self._match()

    def _match(self) -> None:
        ends = self._ends
        tables = {id(table): table for table in ends.tables if table is not None}
        self._tables = list(tables.values())
        first = np.cumsum([0, *(len(table.edge) for table in self._tables)])
        first_of = dict(zip(tables, first.tolist(), strict=False))
        begin = np.array([first_of.get(id(table), 0) for table in ends.tables], np.int64)
        self._nodes = np.flatnonzero(ends.row >= 0)
        self._rows = begin[ends.place[self._nodes]] + ends.row[self._nodes]  # rows of all tables, one after the other
        alone = np.flatnonzero((ends.is_send | ends.is_recv) & (ends.row < 0)).tolist()
        self.from_attrs = {n: transfer_of(ends.kinds[int(ends.kind_of[n])]) for n in alone}
        self._match_rows(int(first[-1]))
        self._match_keys()

    def of(self, n: int) -> TransferredTensor:
        """The transfer that node `n` is an end of."""
        ends = self._ends
        table = ends.tables[int(ends.place[n])]
        if ends.row[n] < 0 or table is None:
            return self.from_attrs[n]
        return table.transfer(int(ends.row[n]), is_recv=bool(ends.is_recv[n]))

    def part(self, nodes: Ids) -> JoinedTransfers:
        """Those among some nodes, which are numbered anew in their order; a receive's send must be among them."""
        ends = self._ends
        part = replace(
            ends,
            names=[ends.names[n] for n in nodes.tolist()],
            kind_of=ends.kind_of[nodes],
            place=ends.place[nodes],
            row=ends.row[nodes],
            is_send=ends.is_send[nodes],
            is_recv=ends.is_recv[nodes],
        )
        return JoinedTransfers(part)

    def _match_rows(self, count: int) -> None:
        is_recv = self._ends.is_recv[self._nodes]
        send_of_row = np.full(count, -1, np.int32)
        send_of_row[self._rows[~is_recv]] = self._nodes[~is_recv]
        self.sender[self._nodes[is_recv]] = send_of_row[self._rows[is_recv]]

    def _match_keys(self) -> None:
        """Matches what is in no table, by tensor name and devices as at the rendezvous."""
        ends, sender = self._ends, self.sender
        from_client = [n for n, transfer in self.from_attrs.items() if transfer.client_terminated]
        waiting = ends.is_recv & (sender < 0)
        waiting[from_client] = False
        if not waiting.any():
            return
        sends = {self.of(n).key: n for n in np.flatnonzero(ends.is_send).tolist()}
        for n in np.flatnonzero(waiting).tolist():
            sender[n] = sends.get(self.of(n).key, -1)
        missing = np.flatnonzero(waiting & (sender < 0)).tolist()
        if missing:
            raise InvalidArgumentError(
                f"nothing sends {self._awaited(missing)}; pass all partitions of the graph together",
                node=ends.names[missing[0]],
                op=ends.kinds[int(ends.kind_of[missing[0]])].op,
            )

    def _awaited(self, receives: Sequence[int]) -> str:
        """What receives wait for, each with the name of the receive if there are several."""
        if len(receives) == 1:
            return str(self.of(receives[0]).key)
        listed = [f"{self.of(n).key}, for which {self._ends.names[n]!r} waits" for n in receives[:_LISTED]]
        more = [f"what {len(receives) - _LISTED} more receives wait for"] if len(receives) > _LISTED else []
        return ", nor ".join(listed + more)

    @cached_property
    def _route_columns(self) -> tuple[list[TransferRoute], Ids]:
        routes: dict[TransferRoute, int] = {}
        numbers: list[Numbers] = [np.zeros(0, np.int64)]
        for table in self._tables:
            number = np.array([routes.setdefault(route, len(routes)) for route in table.routes], np.int64)
            numbers.append(number[np.array(table.route, np.int64)])
        route_of: Ids = np.full(len(self.sender), -1, np.int32)
        route_of[self._nodes] = np.concatenate(numbers)[self._rows]
        for n, transfer in self.from_attrs.items():
            route_of[n] = routes.setdefault(transfer.route, len(routes))
        return list(routes), route_of

    @property
    def routes(self) -> list[TransferRoute]:
        """The distinct routes; two that differ only in the incarnation are different ones."""
        return self._route_columns[0]

    @property
    def route_of(self) -> Ids:
        """By joint number the index of its route."""
        return self._route_columns[1]
