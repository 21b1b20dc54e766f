"""What every rendezvous must do; each test runs against each implementation."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable

import numpy as np
import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from partita.errors import AbortedError, CancelledError, InvalidArgumentError, PartitaError
from partita.rendezvous import Key, LocalRendezvous, Outcome, Received, Rendezvous, TracedRendezvous

IMPLEMENTATIONS: dict[str, Callable[[], Rendezvous]] = {
    "local": LocalRendezvous,
    "traced": lambda: TracedRendezvous(LocalRendezvous()),
    "traced twice": lambda: TracedRendezvous(TracedRendezvous(LocalRendezvous())),
}
KEY = Key("/job:a/task:0/device:CPU:0", 1, "/job:a/task:0/device:CPU:1", "edge_3_x")


@pytest.fixture(params=list(IMPLEMENTATIONS))
def meeting(request: pytest.FixtureRequest) -> Rendezvous:
    """A fresh rendezvous of each kind."""
    return IMPLEMENTATIONS[request.param]()


def assert_empty(meeting: Rendezvous) -> None:
    """No message and no waiter is left."""
    statistics = meeting.statistics()
    assert (statistics.queued, statistics.waiting) == (0, 0)
    assert statistics.sends == statistics.receives + statistics.dropped


def test_values_come_in_the_order_sent(meeting: Rendezvous) -> None:
    """Several messages of one key are a queue."""
    got: list[Outcome] = []
    for value in range(4):
        meeting.send(KEY, value)
    for _ in range(4):
        meeting.recv_callback(KEY, got.append)
    assert got == [Received(value, False) for value in range(4)]
    assert_empty(meeting)


def test_waiters_are_served_in_the_order_they_came(meeting: Rendezvous) -> None:
    """The receiver may be first, and the earliest is served first, before `send` returns."""
    got: list[tuple[int, Outcome]] = []
    for who in range(4):
        meeting.recv_callback(KEY, lambda outcome, who=who: got.append((who, outcome)))  # type: ignore[misc]  # mypy does not infer a lambda with a default
    for value in range(4):
        meeting.send(KEY, value)
        assert got[-1] == (value, Received(value, False))
    assert_empty(meeting)


def test_keys_do_not_mix(meeting: Rendezvous) -> None:
    """A message reaches only who asked under its own key."""
    got: list[Outcome] = []
    meeting.recv_callback("b", got.append)
    meeting.send("a", 1)
    assert got == []
    meeting.send("b", 2)
    assert got == [Received(2, False)]


def test_a_key_meets_its_string(meeting: Rendezvous) -> None:
    """One side may use the key and the other its precomputed spelling, in both directions."""
    got: list[Outcome] = []
    meeting.send(KEY, 1)
    meeting.recv_callback(str(KEY), got.append)
    meeting.send(str(KEY), 2)
    meeting.recv_callback(KEY, got.append)
    assert got == [Received(1, False), Received(2, False)]
    assert_empty(meeting)


def test_the_dead_flag_travels(meeting: Rendezvous) -> None:
    """A dead tensor is delivered as such, in its place in the queue."""
    got: list[Outcome] = []
    meeting.send(KEY, None, is_dead=True)
    meeting.send(KEY, 5)
    meeting.recv_callback(KEY, got.append)
    meeting.recv_callback(KEY, got.append)
    meeting.recv_callback(KEY, got.append)
    meeting.send(KEY, None, True)
    assert got == [Received(None, True), Received(5, False), Received(None, True)]


def test_the_value_itself_travels(meeting: Rendezvous) -> None:
    """Nothing is copied between the two ends."""
    got: list[Outcome] = []
    value = np.arange(3.0)
    meeting.send(KEY, value)
    meeting.recv_callback(KEY, got.append)
    assert isinstance(got[0], Received)
    assert got[0].value is value


def test_a_callback_may_use_the_rendezvous(meeting: Rendezvous) -> None:
    """Inside a callback the table is already as it will be after it."""
    got: list[Outcome] = []

    def again(outcome: Outcome) -> None:
        got.append(outcome)
        if len(got) < 4:
            meeting.recv_callback(KEY, again)
            meeting.send(KEY, len(got))

    meeting.recv_callback(KEY, again)
    meeting.send(KEY, 0)
    assert sorted(outcome[0] for outcome in got if isinstance(outcome, Received)) == [0, 1, 2, 3]
    assert_empty(meeting)


def test_a_cancelled_waiter_is_passed_over(meeting: Rendezvous) -> None:
    """Cancel works once, at any place of the queue, and the message goes to the next in line."""
    got: list[tuple[str, Outcome]] = []
    waiters = [meeting.recv_callback(KEY, lambda o, who=who: got.append((who, o))) for who in "abc"]  # type: ignore[misc]  # as above
    assert waiters[1].cancel()
    assert waiters[0].cancel()
    assert not waiters[0].cancel()
    meeting.send(KEY, 1)
    assert got == [("c", Received(1, False))]
    assert not waiters[2].cancel()
    assert meeting.statistics().cancelled == 2
    assert_empty(meeting)


def test_equal_waiters_are_still_two(meeting: Rendezvous) -> None:
    """Withdrawing one of two receives with the same callback leaves the other one waiting."""
    got: list[Outcome] = []
    callback = got.append
    first = meeting.recv_callback(KEY, callback)
    second = meeting.recv_callback(KEY, callback)
    assert second.cancel()
    assert not second.cancel()
    meeting.send(KEY, 1)
    assert got == [Received(1, False)]
    assert not first.cancel()


def test_a_served_receive_cannot_be_cancelled(meeting: Rendezvous) -> None:
    """Neither one that was served at once, nor by mistake the next receive of its key."""
    meeting.send(KEY, 1)
    served = meeting.recv_callback(KEY, lambda _: None)
    meeting.recv_callback(KEY, lambda _: None)
    assert not served.cancel()
    assert meeting.statistics().waiting == 1


def test_abort_reaches_waiters_and_drops_values(meeting: Rendezvous) -> None:
    """Whoever waits gets the very error, what is queued is gone."""
    got: list[Outcome] = []
    error = AbortedError("device lost")
    meeting.recv_callback("a", got.append)
    meeting.recv_callback("a", got.append)
    meeting.recv_callback("b", got.append)
    meeting.send("c", 1)
    meeting.send("d", 1)
    meeting.send("d", 2)
    meeting.abort(error)
    assert len(got) == 3
    assert all(outcome is error for outcome in got)
    assert meeting.statistics().dropped == 3
    assert meeting.statistics().aborted
    assert_empty(meeting)


def test_after_an_abort_everything_fails_with_the_first_error(meeting: Rendezvous) -> None:
    """The first error stays, the second abort changes nothing."""
    got: list[Outcome] = []
    first = InvalidArgumentError("root cause")
    meeting.send(KEY, 1)
    meeting.abort(first)
    meeting.abort(AbortedError("consequence"))
    meeting.close()
    with pytest.raises(InvalidArgumentError) as caught:
        meeting.send(KEY, 2)
    assert caught.value is first
    waiter = meeting.recv_callback(KEY, got.append)
    assert got == [first]
    assert not waiter.cancel()
    assert_empty(meeting)


def test_a_callback_may_answer_an_abort(meeting: Rendezvous) -> None:
    """A waiter that asks again while it is told of the abort is told again, and nothing hangs."""
    got: list[Outcome] = []

    def again(outcome: Outcome) -> None:
        got.append(outcome)
        if len(got) < 3:
            meeting.recv_callback(KEY, again)
            meeting.abort(CancelledError("later"))

    meeting.recv_callback(KEY, again)
    error = AbortedError("first")
    meeting.abort(error)
    assert [outcome is error for outcome in got] == [True] * 3


def test_a_failing_callback_does_not_keep_others_waiting(meeting: Rendezvous) -> None:
    """On abort every waiter is told; the exceptions of bad callbacks come out together afterwards."""
    got: list[Outcome] = []

    def bad(_: Outcome) -> None:
        raise ZeroDivisionError

    meeting.recv_callback(KEY, bad)
    meeting.recv_callback(KEY, got.append)
    with pytest.raises(ExceptionGroup) as caught:
        meeting.abort(AbortedError("x"))
    assert caught.group_contains(ZeroDivisionError)
    assert len(got) == 1


def test_close_cancels_waiters(meeting: Rendezvous) -> None:
    """Who still waits when the step is over is told so; closing twice is harmless."""
    got: list[Outcome] = []
    meeting.recv_callback(KEY, got.append)
    meeting.close()
    meeting.close()
    assert len(got) == 1
    assert isinstance(got[0], CancelledError)
    with pytest.raises(CancelledError):
        meeting.send(KEY, 1)


def test_statistics_count(meeting: Rendezvous) -> None:
    """The counters say what happened, and sends balance."""
    meeting.send("a", np.zeros(4, np.float32))
    meeting.send("a", np.float64(1.0))
    meeting.send("a", None, is_dead=True)
    meeting.recv_callback("a", lambda _: None)
    meeting.recv_callback("b", lambda _: None)
    meeting.recv_callback("b", lambda _: None).cancel()
    statistics = meeting.statistics()
    assert (statistics.sends, statistics.receives, statistics.queued, statistics.waiting) == (3, 1, 2, 1)
    assert (statistics.bytes, statistics.cancelled, statistics.dropped, statistics.aborted) == (24, 1, 0, False)


def test_nothing_is_kept_alive(meeting: Rendezvous) -> None:
    """A delivered tensor belongs to its receiver alone, and an ended rendezvous holds none."""
    first, second = np.zeros(1), np.zeros(1)
    gone = weakref.ref(first), weakref.ref(second)
    meeting.send("a", first)
    meeting.recv_callback("a", lambda _: None)
    meeting.send("b", second)
    meeting.close()
    del first, second
    gc.collect()
    assert [reference() for reference in gone] == [None, None]


async def test_recv_waits_for_the_value(meeting: Rendezvous) -> None:
    """Either side may be first."""
    got: list[Received] = []

    async def receive() -> None:
        got.append(await meeting.recv(KEY))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(receive)
        await wait_all_tasks_blocked()
        assert meeting.statistics().waiting == 1
        meeting.send(KEY, 1)
        meeting.send(KEY, None, is_dead=True)
    assert got == [Received(1, False)]
    assert await meeting.recv(KEY) == Received(None, True)
    assert_empty(meeting)


async def test_recv_is_a_checkpoint_even_when_the_value_is_there(meeting: Rendezvous) -> None:
    """A receive in a cancelled scope raises Cancelled and takes nothing."""
    meeting.send(KEY, 1)
    with trio.CancelScope() as scope:
        scope.cancel()
        await meeting.recv(KEY)
    assert scope.cancelled_caught
    assert meeting.statistics().queued == 1
    with trio.testing.assert_checkpoints():
        assert await meeting.recv(KEY) == Received(1, False)


async def test_a_cancelled_recv_leaves_no_waiter_and_steals_nothing(meeting: Rendezvous) -> None:
    """The message goes to the one who still waits."""
    got: list[tuple[str, Received]] = []
    scope = trio.CancelScope()

    async def receive(who: str, within: trio.CancelScope) -> None:
        with within:
            got.append((who, await meeting.recv(KEY)))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(receive, "cancelled", scope)
        await wait_all_tasks_blocked()
        nursery.start_soon(receive, "patient", trio.CancelScope())
        await wait_all_tasks_blocked()
        scope.cancel()
        await wait_all_tasks_blocked()
        assert meeting.statistics().waiting == 1
        meeting.send(KEY, 1)
    assert got == [("patient", Received(1, False))]
    assert_empty(meeting)


async def test_a_value_sent_before_the_cancellation_arrives(meeting: Rendezvous) -> None:
    """A message handed to a waiter is not lost when its scope is cancelled before the task runs again."""
    got: list[Received] = []
    scope = trio.CancelScope()

    async def receive() -> None:
        with scope:
            got.append(await meeting.recv(KEY))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(receive)
        await wait_all_tasks_blocked()
        meeting.send(KEY, 1)
        scope.cancel()
    assert got == [Received(1, False)]
    assert_empty(meeting)


async def test_a_cancellation_before_the_value_leaves_it_queued(meeting: Rendezvous) -> None:
    """In the opposite order the message stays for the next receiver."""
    scope = trio.CancelScope()

    async def receive() -> None:
        with scope:
            await meeting.recv(KEY)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(receive)
        await wait_all_tasks_blocked()
        scope.cancel()
        meeting.send(KEY, 1)
    assert meeting.statistics().queued == 1


async def test_abort_raises_in_every_recv(meeting: Rendezvous) -> None:
    """Waiting tasks and later ones get the error of the first abort."""
    error = AbortedError("device lost")
    caught: list[PartitaError] = []

    async def receive() -> None:
        try:
            await meeting.recv(KEY)
        except AbortedError as failure:
            caught.append(failure)

    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(receive)
        await wait_all_tasks_blocked()
        meeting.abort(error)
    await receive()
    assert [failure is error for failure in caught] == [True] * 4
    assert_empty(meeting)
