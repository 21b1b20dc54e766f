"""The kinds of collective, what their size means, and how many bytes cross a port for it.

    kind             size in bytes           a ring of n ranks: steps, share of the size that leaves each rank
    all_reduce       buffer of a rank        2 (n - 1)     2 (n - 1) / n
    all_gather       output                  n - 1         (n - 1) / n
    reduce_scatter   input                   n - 1         (n - 1) / n
    all_to_all       buffer of a rank        n - 1         (n - 1) / n
    broadcast        buffer of a rank        n - 1         1
    send_recv        what a rank sends       1             1
    permute          buffer of a rank        1             1

In a permute every rank sends its buffer to the next one, the last to the first. Bus bandwidth, as nccl-tests prints it,
is that share of the size / time.
"""

from __future__ import annotations

from ....errors import InvalidArgumentError
from ....graph.suggestions import suggestion

KINDS = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "send_recv", "permute")
MEASURED_KINDS = KINDS[:4]
"""kinds with curves of their own; the others follow from them"""

_OTHER_NAMES = {"alltoall": "all_to_all", "all2all": "all_to_all", "p2p": "send_recv", "sendrecv": "send_recv"}


def kind_named(name: str) -> str:
    """The kind of that name or of another spelling ("alltoall", "p2p"); InvalidArgumentError with the nearest name."""
    kind = _OTHER_NAMES.get(name, name)
    if kind not in KINDS:
        raise InvalidArgumentError(f"{name!r} is no kind of collective{suggestion(name, KINDS)}")
    return kind


def bus_share(kind: str, ranks: int) -> float:
    """Share of the size that leaves each rank."""
    if kind == "all_reduce":
        return 2 * (ranks - 1) / ranks
    return 1.0 if kind in ("broadcast", "send_recv", "permute") else (ranks - 1) / ranks
