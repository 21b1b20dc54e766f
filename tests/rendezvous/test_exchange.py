"""What two exchanges say to each other: merged, within the budget, and nothing after the end."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

from partita.errors import AbortedError, InternalError, UnavailableError
from partita.rendezvous import Outcome, Received
from partita.rendezvous.messages import Arrived, Ask, Data
from tests.rendezvous.processes import Processes

OUT, BACK = (0, 1), (1, 0)  # channels: from the sender, from the receiver


def two(budget_bytes: int = 100) -> Processes:
    """Two processes in step 1; keys "0>1:..." are sent by the first."""
    processes = Processes(2, budget_bytes)
    for process in processes:
        process.begin(1)
    return processes


def test_what_is_asked_and_sent_in_one_instant_is_one_message_a_step() -> None:
    """And a message names a key once: values come under the number of their ask."""
    processes = two()
    sender, receiver = (process.steps.find(1) for process in processes)
    other = [process.begin(2) for process in processes]
    assert sender
    assert receiver
    outcomes: list[Outcome] = []
    receiver.expect(["0>1:a", "0>1:b"], lambda _, outcome: outcomes.append(outcome))
    other[1].recv_callback("0>1:a", outcomes.append)
    receiver.recv_callback("0>1:a", outcomes.append)
    processes[1].flush()
    assert list(processes.channels[BACK]) == [Ask(1, 0, ["0>1:a", "0>1:b", "0>1:a"]), Ask(2, 3, ["0>1:a"])]
    processes.deliver(BACK)
    processes.deliver(BACK)
    for key, size in (("0>1:b", 1), ("0>1:a", 2), ("0>1:a", 3)):
        sender.send(key, (size,))
    other[0].send("0>1:a", None, is_dead=True)
    processes[0].flush()
    values = [Received((size,), False) for size in (1, 2, 3)]
    assert list(processes.channels[OUT]) == [Data(1, [1, 0, 2], values, 6), Data(2, [3], [Received(None, True)], 0)]
    processes.deliver(OUT)
    processes.deliver(OUT)
    assert outcomes == [*values, Received(None, True)]
    processes[1].flush()
    assert list(processes.channels[BACK]) == [Arrived(6)]


def test_bytes_are_in_flight_until_they_have_arrived() -> None:
    """The rest waits in order; a value above the budget goes alone."""
    processes = two(budget_bytes=10)
    sender, receiver = (process.steps.find(1) for process in processes)
    assert sender
    assert receiver
    received: list[int] = []
    keys = [f"0>1:{number}" for number in range(5)]
    receiver.expect(keys, lambda _, outcome: received.append(outcome[0][0]))  # type: ignore[index]  # no error comes
    processes.settle()
    for key, size in zip(keys, (6, 4, 1, 25, 2), strict=True):
        sender.send(key, (size,))
    exchange = processes[0].exchanges[1]
    history = []
    while exchange.statistics().waiting:
        processes[0].flush()
        exchange.flush()  # changes nothing: nothing has arrived
        history.append((exchange.statistics().bytes_in_flight, exchange.statistics().waiting))
        processes.deliver(OUT)
        processes[1].flush()
        processes.deliver(BACK)
    assert history == [(10, 3), (1, 2), (25, 1), (2, 0)]
    assert received == [6, 4, 1, 25, 2]
    assert exchange.statistics().bytes_in_flight == 0


def test_an_error_in_the_place_of_a_value_is_the_outcome_of_its_receive() -> None:
    """It ends the step in that process; the owner hears of it, and the bytes are given back."""
    processes = two()
    aborts: list[object] = []
    sender = processes[0].begin(2)
    receiver = processes[1].begin(2, on_abort=aborts.append)
    outcomes: list[tuple[str, Outcome]] = []
    for name in "ab":
        receiver.recv_callback(f"0>1:{name}", lambda outcome, name=name: outcomes.append((name, outcome)))  # type: ignore[misc]  # mypy does not infer a lambda with a default
    processes.settle()
    sender.send("0>1:a", (5,))
    sender.send("0>1:b", (6,))
    processes[0].flush()
    error = InternalError("no such thing can travel")
    (data,) = processes.channels[OUT]
    assert isinstance(data, Data)
    processes.channels[OUT][0] = data._replace(values=[data.values[0], error])
    processes.settle()
    assert outcomes == [("a", Received((5,), False)), ("b", error)]
    assert aborts == [error]
    assert processes[0].exchanges[1].statistics().bytes_in_flight == 0


def test_a_step_that_ends_takes_its_waiting_values_along() -> None:
    """Values of other steps go on; what is on its way for the step is dropped where it arrives."""
    processes = two(budget_bytes=4)
    sender, receiver = (process.steps.find(1) for process in processes)
    assert sender
    assert receiver
    outcomes: list[Outcome] = []
    receiver.expect(["0>1:a", "0>1:b", "0>1:c"], lambda _, outcome: outcomes.append(outcome))
    processes.settle()
    value = np.zeros(4, np.uint8)
    gone = weakref.ref(value)
    for name in "abc":
        sender.send(f"0>1:{name}", value)
    del value
    processes[0].flush()
    assert processes[0].exchanges[1].statistics().waiting == 2
    receiver.abort(AbortedError("stop"))
    sender.abort(AbortedError("stop"))
    assert processes[0].exchanges[1].statistics().waiting == 0
    processes.settle()
    assert all(isinstance(outcome, AbortedError) for outcome in outcomes)
    for process in processes:
        process.steps.forget(1)
    processes.assert_empty()
    gc.collect()
    assert gone() is None


async def test_a_lost_connection_tells_the_steps_that_wait_for_it() -> None:
    """Nothing is posted any more; a later receive from there, of any sort, ends its step with a copy of the error."""
    processes = two(budget_bytes=4)
    here = processes[1].exchanges[0]
    steps = {number: processes[1].begin(number) for number in (2, 3, 4, 5)}
    outcomes: list[Outcome] = []
    steps[2].recv_callback("0>1:a", outcomes.append)
    processes.settle()
    steps[3].recv_callback("0>1:a", outcomes.append)
    steps[4].recv_callback("here", outcomes.append)
    lost = UnavailableError("worker 0 is gone")
    assert processes.lose(0, 1, lost) == [[], [2, 3]]
    assert here.close(lost) == []
    processes.settle()
    for number in (2, 3):
        steps[number].abort(lost)
    assert outcomes == [lost, lost]
    steps[4].recv_callback("0>1:b", outcomes.append)
    steps[5].expect(["0>1:b"], lambda _, outcome: outcomes.append(outcome))
    with pytest.raises(UnavailableError):
        await processes[1].begin(6).recv("0>1:b")
    assert len(outcomes) == 5, "the receive of step 4 that was hosted here ends as well"
    assert [error is lost for error in outcomes[2:]] == [False] * 3
    assert all(isinstance(error, UnavailableError) for error in outcomes)
    here.ask(2, ["0>1:c"])
    processes[0].begin(2).send("0>1:a", (1,))
    processes.settle()
    assert processes[0].exchanges[1].statistics().waiting == here.statistics().asked == 0
    for process in processes:
        for rendezvous in process.steps:
            process.steps.forget(rendezvous.step)
    processes.assert_empty()


def test_a_receiver_may_end_its_step() -> None:
    """What came with its value is dropped."""
    processes = two()
    sender, receiver = (process.steps.find(1) for process in processes)
    assert sender
    assert receiver
    outcomes: list[Outcome] = []
    receiver.recv_callback("0>1:a", lambda _: processes[1].steps.forget(1))
    receiver.recv_callback("0>1:b", outcomes.append)
    processes.settle()
    sender.send("0>1:a", (1,))
    sender.send("0>1:b", (1,))
    processes.settle()
    assert [type(outcome).__name__ for outcome in outcomes] == ["CancelledError"]
    processes[0].steps.forget(1)
    processes.assert_empty()


@pytest.mark.parametrize("asked_twice", [False, True])
def test_an_ask_may_come_before_the_step_and_after_it(asked_twice: bool) -> None:
    """Before: the value leaves when it is sent. After: nobody answers."""
    processes = Processes(2)
    outcomes: list[Outcome] = []
    receiver = processes[1].begin(1)
    receiver.expect(["0>1:a"] * (1 + asked_twice), lambda _, outcome: outcomes.append(outcome))
    processes.settle()
    sender = processes[0].begin(1)
    for size in (1, 2):
        sender.send("0>1:a", (size,))
    processes.settle()
    assert [outcome[0] for outcome in outcomes if isinstance(outcome, Received)] == [(1,), (2,)][: 1 + asked_twice]
    processes[0].steps.forget(1)
    receiver.recv_callback("0>1:a", outcomes.append)
    processes.settle()
    assert len(processes[0].steps) == 0
    processes[1].steps.forget(1)
    processes.assert_empty()
