"""What processes say to each other arrives as it was said, by way of bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita import errors
from partita.actors.running.callee import CalledFunction
from partita.actors.running.remote.messages import CallBegin, CallEnd, Caller, Probe, ProbeAnswer, Watch
from partita.actors.sessions.processes.messages import control
from partita.actors.sessions.processes.messages.errors import error_from_document, error_to_document
from partita.actors.sessions.processes.messages.layout import (
    HostedBy,
    HostLayout,
    cluster_of,
    cluster_text,
    incarnation_of,
    with_incarnations,
)
from partita.actors.sessions.processes.messages.records import record_from_wire, record_to_wire
from partita.actors.sessions.processes.messages.tensors import exchange_from_wire, exchange_to_wire
from partita.devices.cluster import local_cluster
from partita.devices.wire import WireMessage, decode, encode
from partita.errors import AbortedError, DataLossError, InvalidArgumentError, PartitaError, Reason, UnimplementedError
from partita.graph import NameAttrList
from partita.rendezvous import Received
from partita.rendezvous.messages import Arrived, Ask, Data

CALL = CallBegin(
    1,
    CalledFunction(NameAttrList(name="f"), "CPU:0", ("CPU:1",), True, "site/"),
    "7:0",
    2,
    (1, 2),
    (Caller("y", ""),),
    "PartitionedCall",
    "CPU:0",
    None,
    {0: np.float32(3)},
)
RECORDS = [
    control.HostOpen(None, 0.005, 0.001),
    control.Arrange(HostLayout(cluster_text(local_cluster("cpu:2")), (HostedBy("p", "tcp://a:1", ("CPU:0",)),))),
    control.RegisterShare(3, (("CPU:0", b"\x00\xff"),), 1, ("key",)),
    control.StartShare(7, 3, 5, True, False, {0: np.float32(2), 1: np.float32(4)}),
    control.ShareRegistered(3, None),
    control.StepsOver((1, 2)),
    control.VariablesTaken("CPU:0", (("c", "t", "n", 1, (2, None)), ("c", "t", "m", 1, None)), {1: np.int32(1)}),
    control.OfStep(7, CALL),
    control.OfStep(7, CallEnd("7:0", {})),
    control.OfStep(7, ProbeAnswer(1, True, 3, 4)),
    control.OfStep(7, Watch()),
    control.OfStep(7, Probe(2)),
    control.HostClose(),
]


def through_bytes(message: WireMessage) -> WireMessage:
    """What arrives of a message."""
    (arrived,) = decode(b"".join(encode([message])))
    return arrived


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: type(record).__name__)
def test_records_arrive(record: tuple[Any, ...]) -> None:
    assert record_from_wire(through_bytes(record_to_wire(record))) == record


def test_a_tensor_that_cannot_be_sent_is_the_error_of_its_step() -> None:
    """It takes the place of the message."""
    call = CALL._replace(arguments={0: object()})
    arrived = record_from_wire(through_bytes(record_to_wire(control.OfStep(7, call))))
    assert isinstance(arrived.message, UnimplementedError)
    assert arrived.step == 7


@pytest.mark.parametrize(
    "header",
    [
        {},
        {"op": "Nothing", "of": []},
        {"op": "StepsOver", "of": []},
        {"op": "StepsOver", "of": [{"b": 3}]},
        {"op": "StepsOver", "of": [{"x": 3}]},
        {"op": "StepsOver", "of": 3},
    ],
)
def test_what_is_no_record_is_data_loss(header: dict[str, Any]) -> None:
    with pytest.raises(DataLossError):
        record_from_wire(WireMessage(header, []))


texts = st.none() | st.text(max_size=3)


@given(
    st.sampled_from([InvalidArgumentError, AbortedError, UnimplementedError, errors.UnknownError]),
    *[texts] * 4,
    st.none() | st.lists(st.text(max_size=2)),
    st.none() | st.lists(st.text(max_size=2)).map(tuple),
    st.lists(st.text(max_size=3)),
)
def test_errors_arrive(
    kind: type[PartitaError],
    node: str | None,
    op: str | None,
    device: str | None,
    function: str | None,
    inputs: list[str] | None,
    calls: tuple[str, ...] | None,
    notes: list[str],
) -> None:
    error = kind("what is wrong", node=node, op=op, device=device, inputs=inputs, step=3).because(Reason.NO_KERNEL)
    error.function, error.calls = function, calls
    for note in notes:
        error.add_note(note)
    arrived = error_from_document(error_to_document(error))
    assert type(arrived) is kind
    assert str(arrived) == str(error)
    assert (arrived.reason, arrived.calls, getattr(arrived, "__notes__", [])) == (Reason.NO_KERNEL, calls, notes)


@pytest.mark.parametrize(
    "message",
    [
        Ask(3, 5, ["a", "b"]),
        Arrived(17),
        Data(3, [5, 6], [Received(np.float32(1), False), Received(None, True)], 4),
    ],
    ids=lambda message: type(message).__name__,
)
def test_messages_of_exchanges_arrive(message: Ask | Arrived | Data) -> None:
    assert exchange_from_wire(through_bytes(exchange_to_wire(message))) == message


def test_an_object_in_place_of_a_tensor_arrives_as_an_error() -> None:
    data = Data(3, [5], [Received(object(), False)], 0)
    arrived = exchange_from_wire(through_bytes(exchange_to_wire(data)))
    assert isinstance(arrived, Data)
    assert isinstance(arrived.values[0], UnimplementedError)


def test_a_layout_keeps_incarnations() -> None:
    """They differ by process, device and restart, and are never 0."""
    cluster = local_cluster("cpu:2")
    found = {incarnation_of(process, name, n) for process in "ab" for name in cluster.names for n in range(3)}
    assert len(found) == 12
    assert all(0 < each < 1 << 63 for each in found)
    named = with_incarnations(cluster, {cluster.names[1]: 77})
    assert [device.incarnation for device in cluster_of(HostLayout(cluster_text(named), ()))] == [1, 77]
