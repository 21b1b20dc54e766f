"""What every rendezvous must do; each test runs with each implementation."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from partita.errors import AbortedError, CancelledError, InvalidArgumentError, PartitaError
from partita.rendezvous import Key, Outcome, Received, Rendezvous
from tests.rendezvous.implementations import IMPLEMENTATIONS

KEY = Key("/job:a/task:0/device:CPU:0", 1, "/job:a/task:0/device:CPU:1", "edge_3_x")


@pytest.fixture(params=list(IMPLEMENTATIONS))
def rendezvous(request: pytest.FixtureRequest) -> Rendezvous:
    """A new rendezvous of each implementation."""
    return IMPLEMENTATIONS[request.param]()


def assert_empty(rendezvous: Rendezvous) -> None:
    """No message and no waiter is left."""
    statistics = rendezvous.statistics()
    assert (statistics.queued, statistics.waiting) == (0, 0)
    assert statistics.sends == statistics.receives + statistics.dropped


def test_values_come_in_the_order_sent(rendezvous: Rendezvous) -> None:
    """Several messages of one key are a queue."""
    outcomes: list[Outcome] = []
    for value in range(4):
        rendezvous.send(KEY, value)
    for _ in range(4):
        rendezvous.recv_callback(KEY, outcomes.append)
    assert outcomes == [Received(value, False) for value in range(4)]
    assert_empty(rendezvous)


def test_receives_are_served_in_their_order(rendezvous: Rendezvous) -> None:
    """A receive may come before the send; its callback runs before `send` returns."""
    outcomes: list[tuple[int, Outcome]] = []
    for who in range(4):
        rendezvous.recv_callback(KEY, lambda outcome, who=who: outcomes.append((who, outcome)))  # type: ignore[misc]  # mypy does not infer a lambda with a default
    for value in range(4):
        rendezvous.send(KEY, value)
        assert outcomes[-1] == (value, Received(value, False))
    assert_empty(rendezvous)


def test_keys_do_not_mix(rendezvous: Rendezvous) -> None:
    """A message is received under its own key only."""
    outcomes: list[Outcome] = []
    rendezvous.recv_callback("b", outcomes.append)
    rendezvous.send("a", 1)
    assert outcomes == []
    rendezvous.send("b", 2)
    assert outcomes == [Received(2, False)]


def test_a_key_and_its_text_are_the_same(rendezvous: Rendezvous) -> None:
    """One side may use the `Key` and the other its text, in both directions."""
    outcomes: list[Outcome] = []
    rendezvous.send(KEY, 1)
    rendezvous.recv_callback(str(KEY), outcomes.append)
    rendezvous.send(str(KEY), 2)
    rendezvous.recv_callback(KEY, outcomes.append)
    assert outcomes == [Received(1, False), Received(2, False)]
    assert_empty(rendezvous)


def test_the_dead_flag_is_received(rendezvous: Rendezvous) -> None:
    """A dead tensor is received as dead, in its place in the queue."""
    outcomes: list[Outcome] = []
    rendezvous.send(KEY, None, is_dead=True)
    rendezvous.send(KEY, 5)
    rendezvous.recv_callback(KEY, outcomes.append)
    rendezvous.recv_callback(KEY, outcomes.append)
    rendezvous.recv_callback(KEY, outcomes.append)
    rendezvous.send(KEY, None, True)
    assert outcomes == [Received(None, True), Received(5, False), Received(None, True)]


def test_the_value_is_not_copied(rendezvous: Rendezvous) -> None:
    """The receiver gets the object that was sent."""
    outcomes: list[Outcome] = []
    value = np.arange(3.0)
    rendezvous.send(KEY, value)
    rendezvous.recv_callback(KEY, outcomes.append)
    assert isinstance(outcomes[0], Received)
    assert outcomes[0].value is value


def test_a_callback_may_use_the_rendezvous(rendezvous: Rendezvous) -> None:
    """The table is up to date before a callback runs, so it may send and receive."""
    outcomes: list[Outcome] = []

    def again(outcome: Outcome) -> None:
        outcomes.append(outcome)
        if len(outcomes) < 4:
            rendezvous.recv_callback(KEY, again)
            rendezvous.send(KEY, len(outcomes))

    rendezvous.recv_callback(KEY, again)
    rendezvous.send(KEY, 0)
    assert sorted(outcome[0] for outcome in outcomes if isinstance(outcome, Received)) == [0, 1, 2, 3]
    assert_empty(rendezvous)


def test_a_cancelled_receive_gets_no_message(rendezvous: Rendezvous) -> None:
    """A receive can be cancelled once, at any place of the queue; the next one gets the message."""
    outcomes: list[tuple[str, Outcome]] = []
    waiters = [rendezvous.recv_callback(KEY, lambda o, who=who: outcomes.append((who, o))) for who in "abc"]  # type: ignore[misc]  # as above
    assert waiters[1].cancel()
    assert waiters[0].cancel()
    assert not waiters[0].cancel()
    rendezvous.send(KEY, 1)
    assert outcomes == [("c", Received(1, False))]
    assert not waiters[2].cancel()
    assert rendezvous.statistics().cancelled == 2
    assert_empty(rendezvous)


def test_two_receives_with_one_callback_are_two(rendezvous: Rendezvous) -> None:
    """Cancelling one of them leaves the other one waiting."""
    outcomes: list[Outcome] = []
    callback = outcomes.append
    first = rendezvous.recv_callback(KEY, callback)
    second = rendezvous.recv_callback(KEY, callback)
    assert second.cancel()
    assert not second.cancel()
    rendezvous.send(KEY, 1)
    assert outcomes == [Received(1, False)]
    assert not first.cancel()


def test_a_served_receive_cannot_be_cancelled(rendezvous: Rendezvous) -> None:
    """A late cancel does not cancel the next receive of the key instead."""
    rendezvous.send(KEY, 1)
    served = rendezvous.recv_callback(KEY, lambda _: None)
    rendezvous.recv_callback(KEY, lambda _: None)
    assert not served.cancel()
    assert rendezvous.statistics().waiting == 1


def test_abort_reaches_waiters_and_drops_values(rendezvous: Rendezvous) -> None:
    """Waiting receives get the same error object; queued messages are dropped."""
    outcomes: list[Outcome] = []
    error = AbortedError("device lost")
    rendezvous.recv_callback("a", outcomes.append)
    rendezvous.recv_callback("a", outcomes.append)
    rendezvous.recv_callback("b", outcomes.append)
    rendezvous.send("c", 1)
    rendezvous.send("d", 1)
    rendezvous.send("d", 2)
    rendezvous.abort(error)
    assert len(outcomes) == 3
    assert all(outcome is error for outcome in outcomes)
    assert rendezvous.statistics().dropped == 3
    assert rendezvous.statistics().aborted
    assert_empty(rendezvous)


def test_after_an_abort_everything_fails_with_the_first_error(rendezvous: Rendezvous) -> None:
    """Later aborts do not replace the error."""
    outcomes: list[Outcome] = []
    first = InvalidArgumentError("root cause")
    rendezvous.send(KEY, 1)
    rendezvous.abort(first)
    rendezvous.abort(AbortedError("consequence"))
    rendezvous.close()
    with pytest.raises(InvalidArgumentError) as caught:
        rendezvous.send(KEY, 2)
    assert caught.value is first
    waiter = rendezvous.recv_callback(KEY, outcomes.append)
    assert outcomes == [first]
    assert not waiter.cancel()
    assert_empty(rendezvous)


def test_an_error_is_let_go(rendezvous: Rendezvous) -> None:
    """After `forget_error` nothing refers to the error of the abort; the rendezvous stays ended."""
    error = InvalidArgumentError("root cause")
    rendezvous.abort(error)
    rendezvous.forget_error()
    gone = weakref.ref(error)
    del error
    assert gone() is None
    with pytest.raises(CancelledError):
        rendezvous.send(KEY, 1)


def test_one_callback_for_many_keys(rendezvous: Rendezvous) -> None:
    """Messages that wait, messages that come later, a key twice, other receives and an abort: each key by its order."""
    outcomes: list[tuple[object, Outcome]] = []
    others: list[Outcome] = []
    rendezvous.send("a", 1)
    rendezvous.recv_callback("b", others.append)
    rendezvous.expect(["a", "b", "c", "c", "d"], lambda key, outcome: outcomes.append((key, outcome)))
    rendezvous.recv_callback("d", others.append)
    assert outcomes == [("a", Received(1, False))]
    for key, value in (("b", 2), ("c", 3), ("d", 4), ("b", 5), ("c", 6), ("d", 7)):
        rendezvous.send(key, value)
    got = [(key, outcome.value) for key, outcome in outcomes if isinstance(outcome, Received)]
    assert got == [("a", 1), ("c", 3), ("d", 4), ("b", 5), ("c", 6)]
    assert others == [Received(2, False), Received(7, False)]
    assert_empty(rendezvous)
    outcomes.clear()
    rendezvous.expect(["x", "y"], lambda key, outcome: outcomes.append((key, outcome)))
    assert sorted(rendezvous.waiting()) == ["x", "y"]
    error = AbortedError("over")
    rendezvous.abort(error)
    rendezvous.expect(["z"], lambda key, outcome: outcomes.append((key, outcome)))
    assert outcomes == [("x", error), ("y", error), ("z", error)]
    assert_empty(rendezvous)


def test_a_callback_may_answer_an_abort(rendezvous: Rendezvous) -> None:
    """A callback that receives again during an abort gets the error again."""
    outcomes: list[Outcome] = []

    def again(outcome: Outcome) -> None:
        outcomes.append(outcome)
        if len(outcomes) < 3:
            rendezvous.recv_callback(KEY, again)
            rendezvous.abort(CancelledError("later"))

    rendezvous.recv_callback(KEY, again)
    error = AbortedError("first")
    rendezvous.abort(error)
    assert [outcome is error for outcome in outcomes] == [True] * 3


def test_a_failing_callback_does_not_keep_others_waiting(rendezvous: Rendezvous) -> None:
    """An abort calls every callback; then it raises the exceptions of callbacks together."""
    outcomes: list[Outcome] = []

    def bad(_: Outcome) -> None:
        raise ZeroDivisionError

    rendezvous.recv_callback(KEY, bad)
    rendezvous.recv_callback(KEY, outcomes.append)
    with pytest.raises(ExceptionGroup) as caught:
        rendezvous.abort(AbortedError("x"))
    assert caught.group_contains(ZeroDivisionError)
    assert len(outcomes) == 1


def test_close_cancels_waiters(rendezvous: Rendezvous) -> None:
    """Waiting receives get a CancelledError; closing twice has no effect."""
    outcomes: list[Outcome] = []
    rendezvous.recv_callback(KEY, outcomes.append)
    rendezvous.close()
    rendezvous.close()
    assert len(outcomes) == 1
    assert isinstance(outcomes[0], CancelledError)
    with pytest.raises(CancelledError):
        rendezvous.send(KEY, 1)


def test_statistics_count(rendezvous: Rendezvous) -> None:
    """Each counter, and sends are receives plus queued messages plus dropped ones."""
    rendezvous.send("a", np.zeros(4, np.float32))
    rendezvous.send("a", np.float64(1.0))
    rendezvous.send("a", None, is_dead=True)
    rendezvous.recv_callback("a", lambda _: None)
    rendezvous.recv_callback("b", lambda _: None)
    rendezvous.recv_callback("b", lambda _: None).cancel()
    statistics = rendezvous.statistics()
    assert (statistics.sends, statistics.receives, statistics.queued, statistics.waiting) == (3, 1, 2, 1)
    assert (statistics.bytes, statistics.cancelled, statistics.dropped, statistics.aborted) == (24, 1, 0, False)


def test_received_and_dropped_tensors_are_garbage(rendezvous: Rendezvous) -> None:
    """The rendezvous keeps no reference to a received tensor, and none at all after its end."""
    first, second = np.zeros(1), np.zeros(1)
    references = weakref.ref(first), weakref.ref(second)
    rendezvous.send("a", first)
    rendezvous.recv_callback("a", lambda _: None)
    rendezvous.send("b", second)
    rendezvous.close()
    del first, second
    gc.collect()
    assert [reference() for reference in references] == [None, None]


async def test_recv_waits_for_the_value(rendezvous: Rendezvous) -> None:
    """The receive may come before the send or after it."""
    outcomes: list[Received] = []

    async def receive() -> None:
        outcomes.append(await rendezvous.recv(KEY))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(receive)
        await wait_all_tasks_blocked()
        assert rendezvous.statistics().waiting == 1
        rendezvous.send(KEY, 1)
        rendezvous.send(KEY, None, is_dead=True)
    assert outcomes == [Received(1, False)]
    assert await rendezvous.recv(KEY) == Received(None, True)
    assert_empty(rendezvous)


async def test_recv_is_a_checkpoint_even_when_the_value_is_there(rendezvous: Rendezvous) -> None:
    """A receive in a cancelled scope raises Cancelled and takes nothing."""
    rendezvous.send(KEY, 1)
    with trio.CancelScope() as scope:
        scope.cancel()
        await rendezvous.recv(KEY)
    assert scope.cancelled_caught
    assert rendezvous.statistics().queued == 1
    with trio.testing.assert_checkpoints():
        assert await rendezvous.recv(KEY) == Received(1, False)


async def test_a_cancelled_recv_leaves_no_waiter_and_takes_no_message(rendezvous: Rendezvous) -> None:
    """The message goes to the receive that still waits."""
    outcomes: list[tuple[str, Received]] = []
    scope = trio.CancelScope()

    async def receive(who: str, within: trio.CancelScope) -> None:
        with within:
            outcomes.append((who, await rendezvous.recv(KEY)))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(receive, "cancelled", scope)
        await wait_all_tasks_blocked()
        nursery.start_soon(receive, "patient", trio.CancelScope())
        await wait_all_tasks_blocked()
        scope.cancel()
        await wait_all_tasks_blocked()
        assert rendezvous.statistics().waiting == 1
        rendezvous.send(KEY, 1)
    assert outcomes == [("patient", Received(1, False))]
    assert_empty(rendezvous)


async def test_a_value_sent_before_the_cancellation_arrives(rendezvous: Rendezvous) -> None:
    """A message is not lost if the scope of its receiver is cancelled before the task runs again."""
    outcomes: list[Received] = []
    scope = trio.CancelScope()

    async def receive() -> None:
        with scope:
            outcomes.append(await rendezvous.recv(KEY))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(receive)
        await wait_all_tasks_blocked()
        rendezvous.send(KEY, 1)
        scope.cancel()
    assert outcomes == [Received(1, False)]
    assert_empty(rendezvous)


async def test_a_cancellation_before_the_value_leaves_it_queued(rendezvous: Rendezvous) -> None:
    """In the opposite order the message stays for the next receiver."""
    scope = trio.CancelScope()

    async def receive() -> None:
        with scope:
            await rendezvous.recv(KEY)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(receive)
        await wait_all_tasks_blocked()
        scope.cancel()
        rendezvous.send(KEY, 1)
    assert rendezvous.statistics().queued == 1


async def test_abort_raises_in_every_recv(rendezvous: Rendezvous) -> None:
    """Waiting tasks and later ones get the error of the first abort."""
    error = AbortedError("device lost")
    caught: list[PartitaError] = []

    async def receive() -> None:
        try:
            await rendezvous.recv(KEY)
        except AbortedError as failure:
            caught.append(failure)

    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(receive)
        await wait_all_tasks_blocked()
        rendezvous.abort(error)
    await receive()
    assert [failure is error for failure in caught] == [True] * 4
    assert_empty(rendezvous)
