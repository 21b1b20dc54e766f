"""What the gradients of segments wait for, found for all segments together.

A gradient of a segment follows from what the forward pass computes after the segment. So the gradients that a segment
waits for are the tensors that follow from later activations, and enter the readers of the segment's tensors, or nodes
that combine what these prepared.

A set of nodes is asked for each segment, so a node has a number whose bit k says whether it is in the set of segment k:

    x -> a (segment 0) -> b (segment 1) -> loss -> d_b -> d_a
    after the segment or in it       a: 01   b: 11   loss: 11
    follows from what is later       a: 00   b: 01   loss: 11   d_b: 11   d_a: 11
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import NamedTuple

from ..analysis.control_flow import has_frames
from ..edge_ends import Output
from .recompute_flow import TrainingFlow
from .recompute_segments import RecomputedSegment


class ActivationRead(NamedTuple):
    """A node of the backward pass that reads an output of the forward pass at one of its ports."""

    reader: int
    port: int
    tensor: Output


class AwaitedGradients:
    """What the gradients of each segment wait for; `kept` are by segment the tensors that do not run again."""

    def __init__(
        self, flow: TrainingFlow, segments: Sequence[RecomputedSegment], kept: Sequence[Collection[Output]]
    ) -> None:
        self._flow, self.segments, self.kept = flow, segments, kept
        self._in_loops = has_frames(flow.graph)
        own = [0] * flow.graph.num_node_ids
        for number, segment in enumerate(segments):
            for node in segment.nodes:
                own[node] |= 1 << number
        after = self._spread(own, flow.order, self._forward_readers)
        later = [reached & ~bits for reached, bits in zip(after, own, strict=True)]
        self._later = later
        self._following = self._spread(later, flow.whole_order, flow.readers)
        """the forward nodes that follow from the segment, what follows from them: its gradients, and much else"""
        self._combined = self._spread(self._following, flow.whole_order[::-1], self._preparing)
        """these, and what prepares something that is combined with them"""
        self.reads = [self._reads(number) for number in range(len(segments))]
        """by segment what the backward pass reads of it, in the order of the forward pass and of readers"""
        readers = [0] * flow.graph.num_node_ids
        for number in range(len(segments)):
            for read in self.repeated_reads(number):
                readers[read.reader] |= 1 << number
        self._behind = self._spread(readers, flow.whole_order, flow.consumers)
        """what waits for a reader of what runs again, as far as no added edge leads there"""

    def _spread(
        self, start: Sequence[int], order: Iterable[int], following: Callable[[int], Iterable[int]]
    ) -> list[int]:
        """The bits of all nodes, when each has those of the nodes before it; `order` has them before the others."""
        found, nodes = list(start), list(order)
        while True:
            before = list(found) if self._in_loops else found
            for node in nodes:
                bits = found[node]
                if bits:
                    for other in following(node):
                        found[other] |= bits
            if before == found:
                return found

    def _forward_readers(self, node: int) -> list[int]:
        return [reader for reader in self._flow.readers(node) if reader in self._flow.forward]

    def _preparing(self, node: int) -> list[int]:
        """What a node reads of nodes outside of the forward pass."""
        return [source for source, _ in self._flow.data.sources(node) if source not in self._flow.forward]

    def _reads(self, number: int) -> list[ActivationRead]:
        data, forward, segment = self._flow.data, self._flow.forward, self.segments[number].nodes
        readers = {reader for node in segment for reader in self._flow.readers(node) if reader not in forward}
        found = [
            ActivationRead(reader, port, tensor)
            for reader in readers
            if self._combined[reader] >> number & 1
            for port, tensor in enumerate(data.sources(reader))
            if tensor[0] in segment
        ]
        return sorted(found, key=lambda read: (self._flow.position[read.tensor[0]], read))

    def repeated_reads(self, number: int) -> list[ActivationRead]:
        """Those of `reads` of what runs again."""
        return [read for read in self.reads[number] if read.tensor not in self.kept[number]]

    def updates(self, number: int) -> set[int]:
        """All nodes that wait for what follows from the segment: gradients, and updates of variables."""
        return self._flow.behind(node for node, bits in enumerate(self._later) if bits >> number & 1)

    def gates(self, number: int, readers: Collection[int]) -> list[int]:
        """The nodes whose outputs these readers of the segment, or what combines what they prepare, wait for.

        Those that must run after one of the readers are left out, and those that may not run.
        """
        flow, segment, gates = self._flow, self.segments[number].nodes, set[int]()
        behind = self._behind_readers(number, readers)
        seen, waiting = set(readers), list(readers)
        while waiting:
            node = waiting.pop()
            entering = {s for s, _ in flow.data.sources(node) if self._following[s] >> number & 1 and s not in segment}
            gates |= {source for source in entering if not behind(source) and flow.always_runs(source)}
            if not entering:
                new = set(flow.readers(node)) - seen
                seen |= new
                waiting += new
        return sorted(gates)

    def _behind_readers(self, number: int, readers: Collection[int]) -> Callable[[int], bool]:
        """Whether a node must run after one of the readers; only if added edges lead on from them these are walked."""
        known = len(self._behind)
        if any(self._behind[source] >> number & 1 for source in self._flow.sources_of_added if source < known):
            return self._flow.behind(readers).__contains__
        return lambda node: bool(self._behind[node] >> number & 1)
