"""Context parallelism as a ring (Liu et al. 2023: Ring attention): keys and values go round, queries stay.

    causal, cp=2                  rank 0 has chunks 0 and 3 of 4, rank 1 has 1 and 2; x attends, . is masked
                                  keys of itself           keys of the other
    rank 0    chunk 0             x .   (causal)           . .
              chunk 3             x x   (causal in 3)      x x
    rank 1    chunk 1             x .                      x .
              chunk 2             x x                      x .

In step i a rank has keys of the rank i places before. Its second chunk sees their first chunk always. Besides, its
first chunk sees their first one too if they are from an earlier rank, else its second chunk sees their second one. So
every rank computes two squares in each step, and no square that is masked. Outputs over parts of the keys are joined by
the logsumexp of their scores: out = sum(out_i * exp(lse_i - lse)), lse = log(sum(exp(lse_i))).
"""

from __future__ import annotations

import numpy as np

from .....errors import UnimplementedError
from .....graph.builder.handles import Tensor
from ..network import RankNetwork
from .core import Attended, AttentionKind, attended


def attended_in_ring(network: RankNetwork, qkv: tuple[Tensor, Tensor, Tensor], kind: AttentionKind) -> Tensor:
    """The attention of the rank's part of the sequence to all of it: [length, batch, heads, value size].

    Raises UnimplementedError for a window that is shorter than the sequence.
    """
    if 0 < kind.window < network.sizes.sequence:
        raise UnimplementedError(
            f'a ring has no window of attention ({kind.window} of {network.sizes.sequence} tokens); use cp_kind="heads"'
        )
    kind = kind._replace(window=0)
    return (_Causal if kind.causal else _Ring)(network, qkv, kind).run()


class _Ring:
    """Attention where every query sees every key."""

    def __init__(self, network: RankNetwork, qkv: tuple[Tensor, Tensor, Tensor], kind: AttentionKind) -> None:
        self.network, self.b, self.kind = network, network.b, kind
        self.query, self.key, self.value = qkv
        self.length = network.length

    def run(self) -> Tensor:
        so_far = attended(self.network, (self.query, self.key, self.value), self.kind, (self.length, self.length))
        self.begin(so_far)
        program = self.network.program
        key, value = self.key, self.value
        for step in range(1, self.network.cp):
            with self.b.scope(f"ring_{step}"):
                key, value = (program.permute(x, "cp", name="passed") for x in (key, value))
                self.add(step, key, value)
        return self.result()

    def begin(self, part: Attended) -> None:
        """Takes what the rank's own keys give."""
        self.parts = [part]

    def add(self, step: int, key: Tensor, value: Tensor) -> None:
        """Adds what the keys of the rank `step` places before give."""
        self.parts.append(attended(self.network, (self.query, key, value), self.kind, (self.length, self.length)))

    def result(self) -> Tensor:
        """The output of all parts."""
        return _joined(self.network, self.parts, self.kind.heads, self.length)


class _Causal(_Ring):
    """Attention to earlier tokens: squares of chunks, the first and the second of each rank."""

    def begin(self, part: Attended) -> None:
        self.chunk = self.length // 2
        self.squares = self.kind._replace(causal=False)
        outputs = self.b.op("Split", 0, part.output, num_split=2, name="outputs")
        sums = self.b.op("Split", 2, part.logsumexp, num_split=2, name="logsumexps")
        self.first, self.second = ([Attended(outputs[k], sums[k])] for k in range(2))
        self.queries = self._halves(self.query, "queries")

    def add(self, step: int, key: Tensor, value: Tensor) -> None:
        keys, values = self._halves(key, "keys"), self._halves(value, "values")
        self.second.append(self._square(self.queries[1], keys[0], values[0]))
        is_earlier = self.b.op("GreaterEqual", self.network.program.position("cp"), step, name="is_earlier")[0]
        chosen = (self._chosen(is_earlier, *pair) for pair in (self.queries, keys, values))
        square = self._square(*chosen)
        never = self.b.constant(np.array(-np.inf), square.logsumexp.dtype, name="never")
        of_first = self._chosen(is_earlier, square.logsumexp, never)
        of_second = self._chosen(is_earlier, never, square.logsumexp)
        self.first.append(Attended(square.output, of_first))
        self.second.append(Attended(square.output, of_second))

    def result(self) -> Tensor:
        halves = [_joined(self.network, parts, self.kind.heads, self.chunk) for parts in (self.first, self.second)]
        return self.b.op("ConcatV2", halves, 0, name="attended")[0]

    def _halves(self, x: Tensor, name: str) -> tuple[Tensor, Tensor]:
        first, second = self.b.op("Split", 0, x, num_split=2, name=name)
        return first, second

    def _chosen(self, condition: Tensor, if_true: Tensor, if_false: Tensor) -> Tensor:
        return self.b.op("SelectV2", condition, if_true, if_false, name="chosen")[0]

    def _square(self, query: Tensor, key: Tensor, value: Tensor) -> Attended:
        return attended(self.network, (query, key, value), self.squares, (self.chunk, self.chunk))


def _joined(network: RankNetwork, parts: list[Attended], heads: int, length: int) -> Tensor:
    """The output over all parts of the keys; each row has seen a key in the first part."""
    b = network.b
    if len(parts) == 1:
        return parts[0].output
    sums = b.op("Pack", [part.logsumexp for part in parts], name="logsumexps")[0]
    most = b.op("StopGradient", b.op("Max", sums, [0], name="most"))
    weights = b.op("Exp", b.op("Sub", sums, most), name="weights")
    shares = b.op("RealDiv", weights, b.op("Sum", weights, [0], name="total"), name="shares")[0]
    by_token = network.reshaped(
        network.transposed(shares, [0, 3, 1, 2]), [len(parts), length, network.sizes.batch, heads, 1]
    )
    terms = [
        network.wide(part.output) * share
        for part, share in zip(parts, b.op("Unpack", by_token, num=len(parts)), strict=True)
    ]
    return network.cast(b.op("AddN", terms, name="joined")[0], parts[0].output.dtype)
