"""A sender may ask when its message has been received, of every rendezvous; `test_remote` has the case of processes."""

from __future__ import annotations

import pytest

from partita.errors import AbortedError
from partita.rendezvous import Received, Rendezvous
from tests.rendezvous.implementations import IN_ONE_PROCESS
from tests.rendezvous.test_conformance import KEY, assert_empty


@pytest.fixture(params=list(IN_ONE_PROCESS))
def rendezvous(request: pytest.FixtureRequest) -> Rendezvous:
    """A new rendezvous of each implementation."""
    return IN_ONE_PROCESS[request.param]()


def test_a_sender_learns_when_its_message_has_been_taken(rendezvous: Rendezvous) -> None:
    """Once, after the receiver has it; not for a key without message, nor for several messages."""
    order: list[object] = []
    assert not rendezvous.when_taken(KEY, lambda: order.append("never"))
    rendezvous.send(KEY, 1)
    assert rendezvous.when_taken(KEY, lambda: order.append("replaced"))
    assert rendezvous.when_taken(KEY, lambda: order.append("taken"))
    assert rendezvous.statistics().queued == 1
    rendezvous.recv_callback(KEY, order.append)
    assert order == [Received(1, False), "taken"]
    for value in (2, 3):
        rendezvous.send(KEY, value)
    assert not rendezvous.when_taken(KEY, lambda: order.append("never"))
    for _ in range(2):
        rendezvous.recv_callback(KEY, order.append)
    assert order[2:] == [Received(2, False), Received(3, False)]
    assert_empty(rendezvous)


def test_a_message_that_is_waited_for_may_be_followed_by_others(rendezvous: Rendezvous) -> None:
    order: list[object] = []
    rendezvous.send(KEY, 1)
    assert rendezvous.when_taken(KEY, lambda: order.append("taken"))
    rendezvous.send(KEY, 2)
    for _ in range(2):
        rendezvous.recv_callback(KEY, order.append)
    assert order == [Received(1, False), "taken", Received(2, False)]
    assert_empty(rendezvous)


def test_an_abort_forgets_who_waits_for_a_message_to_be_taken(rendezvous: Rendezvous) -> None:
    rendezvous.send(KEY, 1)
    assert rendezvous.when_taken(KEY, lambda: pytest.fail("called after an abort"))
    rendezvous.abort(AbortedError("over"))
    assert not rendezvous.when_taken(KEY, lambda: pytest.fail("called after an abort"))
    assert rendezvous.statistics().dropped == 1
