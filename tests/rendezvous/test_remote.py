"""A rendezvous over processes asks once for each value that is wanted, and says when a value has been asked for."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from partita.errors import AbortedError
from partita.rendezvous import Outcome, Received
from partita.rendezvous.messages import Ask
from tests.rendezvous.processes import Processes

KEY = "0>1:x"


def test_the_value_of_a_cancelled_receive_serves_the_next_one() -> None:
    """Which does not ask again, wherever the value is then."""
    processes = Processes(2)
    sender, receiver = (process.begin(1) for process in processes)
    outcomes: list[Outcome] = []
    waiters = [receiver.recv_callback(KEY, lambda _: pytest.fail("was cancelled")) for _ in range(2)]
    processes.settle()
    assert [waiter.cancel() for waiter in [*waiters, waiters[0]]] == [True, True, False]
    sender.send(KEY, 1)
    processes.settle()
    assert receiver.statistics().queued == 1
    receiver.expect([KEY, KEY, KEY], lambda _, outcome: outcomes.append(outcome))
    assert outcomes == [Received(1, False)]
    processes[1].flush()
    (ask,) = processes.channels[1, 0]
    assert ask == Ask(1, 2, [KEY])
    for value in (2, 3):
        sender.send(KEY, value)
    processes.settle()
    assert outcomes == [Received(value, False) for value in (1, 2, 3)]


async def test_the_value_of_a_cancelled_task_serves_the_next_one() -> None:
    """And a task that is cancelled before it waits asks for nothing."""
    processes = Processes(2)
    sender, receiver = (process.begin(1) for process in processes)
    with trio.CancelScope() as scope:
        scope.cancel()
        await receiver.recv(KEY)
    assert processes[1].exchanges[0].statistics().asked == 0
    async with trio.open_nursery() as nursery:
        nursery.start_soon(receiver.recv, KEY)
        await wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert processes[1].exchanges[0].statistics().asked == 1
    sender.send(KEY, 1)
    processes.settle()
    assert await receiver.recv(KEY) == Received(1, False)
    assert processes[1].exchanges[0].statistics().asked == 0


def test_a_message_to_another_process_is_taken_when_it_has_been_asked_for() -> None:
    """Before the receiver has it; a message that was asked for before it was sent does not wait at all."""
    processes = Processes(2)
    sender, receiver = (process.begin(1) for process in processes)
    order: list[object] = []
    sender.send(KEY, 1)
    assert sender.when_taken(KEY, lambda: order.append("taken"))
    receiver.recv_callback(KEY, order.append)
    assert order == []
    processes.settle()
    assert order == ["taken", Received(1, False)]
    receiver.recv_callback(KEY, order.append)
    processes.settle()
    sender.send(KEY, 2)
    assert not sender.when_taken(KEY, lambda: pytest.fail("nothing waits"))


def test_a_trace_has_what_the_nodes_of_its_process_do() -> None:
    """A tensor that crosses is a send in one trace and a transfer in the other; early asks are served all the same."""
    processes = Processes(2)
    receiver = processes[1].begin(1)
    received = receiver.trace()
    receiver.recv_callback(KEY, lambda _: None)
    processes.settle()
    sender = processes[0].begin(1)
    sent = sender.trace()
    sender.send(KEY, 1)
    processes.settle()
    receiver.recv_callback(KEY, lambda _: None).cancel()
    assert [event.kind for event in sent.events] == ["send"]
    assert [event.kind for event in received.events] == ["recv", "received", "recv", "cancelled"]
    assert [transfer.key for transfer in received.transfers()[:1]] == [KEY]


def test_an_abort_is_told_once_and_lets_its_owner_go() -> None:
    """After the waiters have the error; not after a close, nor for one that follows."""
    order: list[object] = []
    rendezvous = Processes(1)[0].begin(1, on_abort=lambda error: order.append(f"told {error}"))
    rendezvous.recv_callback("x", lambda _: rendezvous.abort(AbortedError("second")))
    rendezvous.recv_callback("x", lambda outcome: order.append(str(outcome)))
    rendezvous.abort(AbortedError("first"))
    rendezvous.abort(AbortedError("third"))
    assert order == ["first", "told first"]
    closed = Processes(1)[0].begin(1, on_abort=lambda _: pytest.fail("it was closed"))
    closed.close()
    closed.abort(AbortedError("late"))
    closed.begin(lambda _: pytest.fail("it has ended"))
    closed.recv_callback("x", order.append)
    assert len(order) == 3


def test_steps_leave_nothing_behind() -> None:
    """Ten thousand steps over two processes, some cancelled, some aborted: as many objects as after a thousand."""
    processes = Processes(2, budget_bytes=8)
    keys = [f"0>1:{number}" for number in range(4)]
    counts = []
    for step in range(10_000):
        sender, receiver = (process.begin(step, step) for process in processes)
        receiver.expect(keys, lambda _key, _outcome: None)
        receiver.recv_callback(keys[0], lambda _: None).cancel()
        processes.settle()
        for key in keys:
            sender.send(key, (3,))
        if step % 3:
            processes.settle()
        elif step % 2:
            receiver.abort(AbortedError("stop"))
        for process in processes:
            process.steps.forget(step)
        processes.settle()
        if step in (1_000, 9_999):
            processes.assert_empty()
            del sender, receiver
            gc.collect()
            counts.append(len(gc.get_objects()))
    assert counts[1] <= counts[0] + 5
    assert all(process.steps._over.edges == [-1, 10_000] for process in processes)


def test_a_step_lets_its_values_go_without_the_collector() -> None:
    """Nothing of a forgotten step is in a circle of references."""
    processes = Processes(2, budget_bytes=1)
    sender, receiver = (process.begin(1) for process in processes)
    values = [np.zeros(4), np.zeros(4), np.zeros(4)]
    gone = [weakref.ref(value) for value in values]
    receiver.expect(["0>1:a", "0>1:b"], lambda _key, _outcome: None)
    processes.settle()
    gc.disable()
    try:
        for name in "abc":  # one arrives, one waits for the budget, and nobody asks for the third
            sender.send(f"0>1:{name}", values.pop())
        processes[0].flush()
        processes.deliver((0, 1))
        del sender, receiver
        for process in processes:
            process.steps.forget(1)
        assert [reference() for reference in gone] == [None] * 3
    finally:
        gc.enable()
