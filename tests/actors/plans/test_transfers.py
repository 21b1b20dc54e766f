"""Bundles: what one segment sends to one device is one message, and waiting for whole messages is never too much."""

from __future__ import annotations

import numpy as np
from hypothesis import given, strategies as st

from partita.actors import open_session
from partita.actors.plans.binding import Binder
from partita.actors.plans.columns import columns_of
from partita.actors.plans.draft import Draft, draft_of
from partita.actors.plans.keys import stem_of
from partita.actors.plans.roles import Role
from partita.actors.plans.transfers import TransferMessages, TransferShare, shares_of
from partita.devices.state import DeviceState
from partita.graph import Graph, graph_def_to_graph, split_graph
from partita.graph.analysis.transfers import transfer_of
from partita.graph.builder import GraphBuilder
from partita.graph.protos import GraphDef
from tests.strategies import cpu

DEVICES = 3


@st.composite
def crowds(draw: st.DrawFn) -> GraphDef:
    """Sums of earlier nodes, and nodes that wait for or share the value of one, all over the devices."""
    builder = GraphBuilder()
    tensors = [builder.constant(np.float32(1), device=cpu(0))]
    for number in range(draw(st.integers(1, 30))):
        device, name = cpu(draw(st.integers(0, DEVICES - 1))), f"n{number}"
        inputs = draw(st.lists(st.sampled_from(tensors), min_size=1, max_size=3))
        if draw(st.integers(0, 4)):
            tensors.append(builder.op("AddN", inputs, name=name, device=device)[0])
        else:
            with builder.control_dependencies(*inputs[1:]):
                tensors.append(builder.op("Identity", inputs[0], name=name, device=device)[0])
    return builder.graph_def()


class Crowd:
    """The partitions of a crowd, and their shares."""

    def __init__(self, graph_def: GraphDef, *, bundled: bool = True) -> None:
        whole = graph_def_to_graph(graph_def, add_default_attrs=True)
        whole.assign_devices(whole.requested_device_indices())
        self.graphs: list[Graph] = list(split_graph(whole).values())
        binder = Binder(cpu(0), DeviceState(0))
        self.drafts: list[Draft] = [draft_of(columns_of(g), binder) for g in self.graphs]
        self.shares: list[TransferShare] = shares_of(self.graphs, self.drafts, bundled=bundled)

    def tensors(self, part: int, messages: TransferMessages) -> dict[str, list[str]]:
        """By key of a message the keys of its tensors."""
        graph, ids = self.graphs[part], self.drafts[part].columns.ids
        stems = [stem_of(transfer_of(graph.node_properties(ids[node]))) for node in messages.nodes.tolist()]
        starts = messages.starts.tolist()
        return {key: stems[a:b] for key, a, b in zip(messages.keys, starts[:-1], starts[1:], strict=True)}


@given(crowds())
def test_both_ends_have_the_same_messages_with_the_same_tensors_in_the_same_order(graph_def: GraphDef) -> None:
    crowd = Crowd(graph_def)
    sent: dict[str, list[str]] = {}
    received: dict[str, list[str]] = {}
    for part, share in enumerate(crowd.shares):
        sent |= crowd.tensors(part, share.outgoing)
        received |= crowd.tensors(part, share.incoming)
    assert sent == received
    assert all(key == f"{stems[0]}0:0" for key, stems in sent.items())
    assert sum(map(len, sent.values())) == sum(np.count_nonzero(d.codes == Role.SEND) for d in crowd.drafts)


@given(crowds(), st.booleans())
def test_a_segment_waits_for_exactly_the_messages_that_each_of_its_nodes_needs(
    graph_def: GraphDef, bundled: bool
) -> None:
    crowd = Crowd(graph_def, bundled=bundled)
    for draft, share in zip(crowd.drafts, crowd.shares, strict=True):
        awaited: list[set[int]] = []  # per segment: messages by their first node, awaited by itself or through others
        for segment in range(len(share.grouping.groups)):
            follows = share.grouping.follows(segment)
            assert all(earlier < segment for earlier in follows)
            awaited.append(set(share.grouping.receives(segment)).union(*[awaited[earlier] for earlier in follows]))
        incoming, starts = share.incoming, share.incoming.starts
        first = dict(zip(incoming.nodes.tolist(), np.repeat(incoming.nodes[starts[:-1]], incoming.sizes), strict=True))
        needed: list[set[int]] = []
        begins, producers = draft.columns.producers()
        for node in range(draft.columns.num_nodes):
            own = {int(first[node])} if node in first else set()
            needed.append(own.union(*[needed[p] for p in producers[begins[node] : begins[node + 1]]]))
            if draft.emits[node]:
                assert awaited[share.grouping.segment_of[node]] == needed[node]
        assert set().union(*awaited) == set(map(int, first.values()))


@given(crowds())
def test_segments_never_wait_for_each_other_in_a_circle(graph_def: GraphDef) -> None:
    """Segments that have all they wait for run, again and again, until none is left."""
    shares = Crowd(graph_def).shares
    waiting = {(p, segment) for p, share in enumerate(shares) for segment in range(len(share.grouping.groups))}
    ran: set[tuple[int, int]] = set()
    there: set[tuple[int, int]] = set()  # messages, by partition and first node
    place = {}
    for p, share in enumerate(shares):
        for key, node in zip(share.incoming.keys, share.incoming.nodes[share.incoming.starts[:-1]], strict=True):
            place[key] = p, int(node)
    while waiting:
        ready = set()
        for p, segment in waiting:
            grouping = shares[p].grouping
            received = all((p, node) in there for node in grouping.receives(segment))
            if received and all((p, earlier) in ran for earlier in grouping.follows(segment)):
                ready.add((p, segment))
        assert ready
        waiting -= ready
        ran |= ready
        for p, share in enumerate(shares):
            for key, last in zip(share.outgoing.keys, share.outgoing.last.tolist(), strict=True):
                if (p, int(share.grouping.segment_of[last])) in ran:
                    there.add(place[key])


def fan(width: int) -> GraphDef:
    """x on one device, `width` values of it, each to the other device, there doubled, and back to be added."""
    builder = GraphBuilder()
    x = builder.placeholder("x", "float32", device=cpu(0))
    out = [builder.op("Neg", x, name=f"out{i}", device=cpu(0))[0] for i in range(width)]
    far = [builder.op("Add", value, value, name=f"far{i}", device=cpu(1))[0] for i, value in enumerate(out)]
    builder.op("AddN", far, name="sum", device=cpu(0))
    return builder.graph_def()


def test_tensors_that_are_ready_together_cross_in_one_message_there_and_back() -> None:
    shares = Crowd(fan(20)).shares
    assert [share.outgoing.sizes.tolist() for share in shares] == [[20], [20]]
    assert [len(share.grouping.groups) for share in shares] == [2, 2]  # nothing first, then all that the message allows
    apart = Crowd(fan(20), bundled=False).shares
    assert [share.outgoing.sizes.tolist() for share in apart] == [[1] * 20] * 2


async def test_a_bundle_brings_every_tensor_to_its_reader() -> None:
    async with open_session(fan(20), "cpu:2") as session:
        (got,) = await session.run("sum", {"x": np.arange(3, dtype=np.float32)})
        assert got.tolist() == [0, -40, -80]
