"""The traced rendezvous writes down what happens, in order, and changes nothing."""

from __future__ import annotations

import numpy as np
import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from partita.errors import AbortedError
from partita.rendezvous import Event, Key, LocalRendezvous, TracedRendezvous

KEY = Key("/cpu:0", 1, "/cpu:1", "e")


def traced() -> TracedRendezvous:
    """A traced local rendezvous."""
    return TracedRendezvous(LocalRendezvous())


def kinds(meeting: TracedRendezvous) -> list[str]:
    """The kinds of the events so far."""
    return [event.kind for event in meeting.events]


def test_cause_stands_before_effect() -> None:
    """A send is recorded before the receive that it completes."""
    meeting = traced()
    meeting.recv_callback("k", lambda _: None)
    meeting.send("k", None, is_dead=True)
    assert meeting.events == [Event("recv", "k"), Event("send", "k", True), Event("received", "k", True)]


def test_keys_are_recorded_in_their_wire_form() -> None:
    """A `Key` is written as its string."""
    meeting = traced()
    meeting.send(KEY, 1)
    assert meeting.events == [Event("send", str(KEY))]


def test_endings_are_recorded() -> None:
    """Cancel, abort, refusal and close each leave one event, a second cancel leaves none."""
    meeting = traced()
    waiter = meeting.recv_callback("k", lambda _: None)
    waiter.cancel()
    waiter.cancel()
    meeting.recv_callback("k", lambda _: None)
    meeting.abort(AbortedError("x"))
    with pytest.raises(AbortedError):
        meeting.send("k", 1)
    meeting.close()
    assert kinds(meeting) == ["recv", "cancelled", "recv", "abort", "failed", "send", "refused", "close"]
    assert {event.code for event in meeting.events} == {"", "ABORTED"}


async def test_async_receives_are_recorded() -> None:
    """Each `recv` ends in exactly one of received, failed and cancelled."""
    meeting = traced()

    async def receive(scope: trio.CancelScope) -> None:
        with scope:
            await meeting.recv("k")

    scope = trio.CancelScope()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(receive, scope)
        await wait_all_tasks_blocked()
        scope.cancel()
    meeting.send("k", 1)
    await meeting.recv("k")
    meeting.close()
    with pytest.raises(Exception, match="closed"):
        await meeting.recv("k")
    assert kinds(meeting) == ["recv", "cancelled", "send", "recv", "received", "close", "recv", "failed"]


def test_transfers_are_what_was_received() -> None:
    """Asked for, then there, with the bytes of the tensor; what failed was never received."""
    meeting = traced()
    meeting.recv_callback(KEY, lambda _: None)
    meeting.recv_callback("never", lambda _: None)
    meeting.send(KEY, np.zeros(3, np.float32))
    meeting.send("early", 1)
    meeting.recv_callback("early", lambda _: None)
    assert meeting.waiting() == ["never"]
    meeting.close()
    assert [(transfer.key, transfer.num_bytes) for transfer in meeting.transfers()] == [(str(KEY), 12), ("early", 0)]
    assert all(transfer.asked_ns <= transfer.received_ns for transfer in meeting.transfers())
    assert meeting.waiting() == ["never"]
