"""The traced rendezvous records events in order and behaves like the one inside."""

from __future__ import annotations

import numpy as np
import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from partita.errors import AbortedError
from partita.rendezvous import Event, Key, LocalRendezvous, TracedRendezvous

KEY = Key("/cpu:0", 1, "/cpu:1", "e")


def traced() -> TracedRendezvous:
    """A traced `LocalRendezvous`."""
    return TracedRendezvous(LocalRendezvous())


def kinds(rendezvous: TracedRendezvous) -> list[str]:
    """The kinds of the events so far."""
    return [event.kind for event in rendezvous.events]


def test_cause_stands_before_effect() -> None:
    """A send is recorded before the receive that it completes."""
    rendezvous = traced()
    rendezvous.recv_callback("k", lambda _: None)
    rendezvous.send("k", None, is_dead=True)
    assert rendezvous.events == [Event("recv", "k"), Event("send", "k", True), Event("received", "k", True)]


def test_keys_are_recorded_as_texts() -> None:
    """The event of a `Key` has its text."""
    rendezvous = traced()
    rendezvous.send(KEY, 1)
    assert rendezvous.events == [Event("send", str(KEY))]


def test_endings_are_recorded() -> None:
    """Cancel, abort, close and a send after the end have one event each; a second cancel has none."""
    rendezvous = traced()
    waiter = rendezvous.recv_callback("k", lambda _: None)
    waiter.cancel()
    waiter.cancel()
    rendezvous.recv_callback("k", lambda _: None)
    rendezvous.abort(AbortedError("x"))
    with pytest.raises(AbortedError):
        rendezvous.send("k", 1)
    rendezvous.close()
    assert kinds(rendezvous) == ["recv", "cancelled", "recv", "abort", "failed", "send", "refused", "close"]
    assert {event.code for event in rendezvous.events} == {"", "ABORTED"}


async def test_async_receives_are_recorded() -> None:
    """Each `recv` ends in exactly one of received, failed and cancelled."""
    rendezvous = traced()

    async def receive(scope: trio.CancelScope) -> None:
        with scope:
            await rendezvous.recv("k")

    scope = trio.CancelScope()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(receive, scope)
        await wait_all_tasks_blocked()
        scope.cancel()
    rendezvous.send("k", 1)
    await rendezvous.recv("k")
    rendezvous.close()
    with pytest.raises(Exception, match="closed"):
        await rendezvous.recv("k")
    assert kinds(rendezvous) == ["recv", "cancelled", "send", "recv", "received", "close", "recv", "failed"]


def test_transfers_are_what_was_received() -> None:
    """With times in order and the bytes of the tensor; a failed receive is no transfer."""
    rendezvous = traced()
    rendezvous.recv_callback(KEY, lambda _: None)
    rendezvous.recv_callback("never", lambda _: None)
    rendezvous.send(KEY, np.zeros(3, np.float32))
    rendezvous.send("early", 1)
    rendezvous.recv_callback("early", lambda _: None)
    assert rendezvous.waiting() == ["never"]
    rendezvous.close()
    assert [(transfer.key, transfer.num_bytes) for transfer in rendezvous.transfers()] == [(str(KEY), 12), ("early", 0)]
    assert all(transfer.asked_ns <= transfer.received_ns for transfer in rendezvous.transfers())
    assert rendezvous.waiting() == ["never"]
