"""Law: over processes, too, a message is received once and in order, within the budget, and nothing is left.

Three processes run several steps at once; connections deliver when they like, each in its order; budgets are tiny;
asks come before steps begin; receives are cancelled, steps aborted and forgotten at any moment. At the end all
is delivered.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable
from functools import partial
from random import Random

import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from partita.errors import AbortedError, PartitaError
from partita.rendezvous import Outcome, Received, Waiter
from partita.rendezvous.messages import Arrived, Data
from partita.rendezvous.remote import RemoteRendezvous
from tests.rendezvous.processes import Processes, size_of

COUNT = 3
WHO = st.integers(0, COUNT - 1)
STEPS = st.integers(0, 1)
KEYS = st.sampled_from(["0>1:a", "0>1:b", "1>0:a", "0>2:a", "2>2:a"])  # few, so that sends and receives meet


def assert_bytes_are_counted(processes: Processes) -> None:
    """What is in flight is in a channel, or its arrival has not been told; at most the budget, or one value."""
    for (here, there), channel in processes.channels.items():
        other = processes[there].exchanges[here]
        data = [message for message in channel if isinstance(message, Data)]
        back = [message for message in processes.channels[there, here] if isinstance(message, Arrived)]
        told = other._arrived_bytes + sum(message.num_bytes for message in back)
        in_flight = processes[here].exchanges[there].statistics().bytes_in_flight
        assert in_flight == sum(message.num_bytes for message in data) + told
        if in_flight > processes.budget_bytes:
            sizes = [size_of(value) for message in data for value in message.values if isinstance(value, Received)]
            assert len([size for size in sizes if size]) <= 1
            assert in_flight == (sum(sizes) or told)


class ModelOfProcesses(RuleBasedStateMachine):
    """Sends and receives of every pair of processes, compared with a queue for each key of a step."""

    @initialize(budget=st.integers(1, 8))
    def start(self, budget: int) -> None:
        """New processes."""
        self.processes = Processes(COUNT, budget)
        self.sent: dict[tuple[int, str], list[Received]] = defaultdict(list)
        self.received: dict[tuple[int, str], list[tuple[int, Outcome]]] = defaultdict(list)
        self.waiting: dict[tuple[int, str], list[int]] = defaultdict(list)
        self.waiters: list[tuple[tuple[int, str], int, Waiter]] = []
        self.rendezvous: dict[tuple[int, int], RemoteRendezvous] = {}
        self.aborted: set[int] = set()
        self.counter = 0

    def at(self, step: int, process: int) -> RemoteRendezvous:
        """The rendezvous of a step, which begins when it is first used; others may have asked before."""
        if (step, process) not in self.rendezvous:
            self.rendezvous[step, process] = self.processes[process].begin(step, 0)
        return self.rendezvous[step, process]

    @rule(step=STEPS, key=KEYS, size=st.integers(0, 12))
    def send(self, step: int, key: str, size: int) -> None:
        """Sends a value of some size."""
        self.counter += 1
        message = Received((size, self.counter), self.counter % 5 == 0)
        try:
            self.at(step, int(key[0])).send(key, *message)
        except PartitaError:
            assert step in self.aborted
        else:
            self.sent[step, key].append(message)

    @rule(step=STEPS, receiver=WHO, keys=st.lists(KEYS, min_size=1, max_size=6))
    def expect(self, step: int, receiver: int, keys: list[str]) -> None:
        """Receives under several keys, some of them twice."""
        keys = [key for key in keys if int(key[2]) == receiver]
        rendezvous = self.at(step, receiver)
        for key in keys:
            self.counter += 1
            self.waiting[step, key].append(self.counter)
        rendezvous.expect(keys, lambda key, outcome: self.deliver_to(step, str(key), outcome))

    @rule(step=STEPS, key=KEYS)
    def receive(self, step: int, key: str) -> None:
        """A receive that may be cancelled."""
        self.counter += 1
        who = self.counter
        rendezvous = self.at(step, int(key[2]))
        self.waiting[step, key].append(who)
        waiter = rendezvous.recv_callback(key, partial(self.deliver_to, step, key))
        self.waiters.append(((step, key), who, waiter))

    def deliver_to(self, step: int, key: str, outcome: Outcome) -> None:
        """The outcome of the earliest receive."""
        who = self.waiting[step, key].pop(0)
        if isinstance(outcome, PartitaError):
            assert step in self.aborted
        else:
            self.received[step, key].append((who, outcome))

    @precondition(lambda self: self.waiters)
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        """Cancels a receive, finished or not."""
        queue, who, waiter = data.draw(st.sampled_from(self.waiters))
        assert waiter.cancel() == (who in self.waiting[queue])
        if who in self.waiting[queue]:
            self.waiting[queue].remove(who)

    @precondition(lambda self: any(process.wants_flush for process in self.processes))
    @rule(data=st.data())
    def flush(self, data: st.DataObject) -> None:
        """The end of an instant in one process."""
        data.draw(st.sampled_from([process for process in self.processes if process.wants_flush])).flush()

    @precondition(lambda self: any(self.processes.channels.values()))
    @rule(data=st.data())
    def deliver(self, data: st.DataObject) -> None:
        """The first message of a connection arrives."""
        channels = self.processes.channels
        self.processes.deliver(data.draw(st.sampled_from([pair for pair, messages in channels.items() if messages])))

    @rule(step=STEPS, process=WHO, forget=st.booleans())
    def end(self, step: int, process: int, forget: bool) -> None:
        """A step fails or is forgotten in one process; the others hear of it later or not at all."""
        if self.counter % 4 == 0:  # rarely
            self.aborted.add(step)
            rendezvous = self.at(step, process)
            rendezvous.abort(AbortedError("stop"))
            if forget:
                self.processes[process].steps.forget(step)

    @invariant()
    def bytes_are_counted(self) -> None:
        """At any moment."""
        assert_bytes_are_counted(self.processes)

    @invariant()
    def as_many_are_asked_for_as_are_wanted(self) -> None:
        """A value is on its way or here for each receive that waits, and for each that was cancelled; no other."""
        for (step, here), rendezvous in self.rendezvous.items():
            assert not rendezvous._has_ended or not self.held_for(step, here)
            for key in {key for owner, key in self.waiting if owner == step and int(key[2]) == here != int(key[0])}:
                exchange = self.processes[here].exchanges[int(key[0])]
                asked = [*exchange._asks.get(step, []), *exchange._asked.get(step, {}).values()]
                entry = rendezvous._table._table.get(key)
                queued = len(entry) if isinstance(entry, deque) else 1 if entry else 0
                is_message = isinstance(entry[0] if isinstance(entry, deque) else entry, Received) if entry else False
                wanted = len(self.waiting[step, key]) + rendezvous._spare.get(key, 0)
                assert asked.count(key) + queued * is_message == wanted

    def held_for(self, step: int, process: int) -> bool:
        """Whether an exchange of a process holds something for a step."""
        exchanges = self.processes[process].exchanges.values()
        return any(step in held for e in exchanges for held in (e._asks, e._asked, e._outbox._queues))

    def teardown(self) -> None:
        """Everything is delivered: receives of steps that were not aborted have their values; then all is forgotten."""
        if not hasattr(self, "processes"):
            return
        self.processes.settle()
        for queue in self.sent.keys() | self.received.keys() | self.waiting.keys():
            if queue[0] not in self.aborted:
                received = self.received[queue]
                assert [value for _, value in received] == self.sent[queue][: len(received)]
                assert [who for who, _ in received] == sorted(who for who, _ in received)
                assert not self.waiting[queue] or len(received) == len(self.sent[queue])
        self.aborted |= {0, 1}
        for process in self.processes:
            for step in (0, 1):
                process.steps.forget(step)
        self.processes.settle()
        self.processes.assert_empty()


TestProcesses = ModelOfProcesses.TestCase
TestProcesses.settings = settings(max_examples=100, stateful_step_count=40)


def in_any_order(processes: Processes, random: Random, actions: list[Callable[[], None]]) -> None:
    """Runs actions, flushes and deliveries until none is left; which is next is drawn."""
    while True:
        moves = [*processes.channels] if any(processes.channels.values()) else []
        moves = [channel for channel in moves if processes.channels[channel]]
        flushes = [process for process in processes if process.wants_flush]
        choice = random.randrange(len(moves) + len(flushes) + len(actions)) if moves or flushes or actions else -1
        if choice < 0:
            return
        if choice < len(moves):
            processes.deliver(moves[choice])
        elif choice < len(moves) + len(flushes):
            flushes[choice - len(moves)].flush()
        else:
            actions.pop(choice - len(moves) - len(flushes))()
        assert_bytes_are_counted(processes)


@settings(max_examples=60)
@given(st.randoms(use_true_random=False), st.integers(2, 3), st.integers(1, 20), st.integers(1, 60))
def test_no_step_waits_for_the_budget_for_ever(random: Random, count: int, budget: int, transfers: int) -> None:
    """Both sides of each connection have more to send than the budget, and a value is not used when it arrives.

    Each value is sent on by its receiver to a third place, and only when all of its step have come.
    """
    processes = Processes(count, budget)
    received: dict[int, list[int]] = defaultdict(list)
    wanted: dict[int, list[int]] = defaultdict(list)
    actions: list[Callable[[], None]] = []
    for number in range(transfers):
        step = random.randrange(4)
        sender, receiver = random.sample(range(count), 2)
        key, size = f"{sender}>{receiver}:{number}", random.randrange(2 * budget)
        wanted[step].append(number)
        here, there = (processes[place].begin(step, 0) for place in (sender, receiver))

        def send_on(_: Outcome, step: int = step, number: int = number, there: RemoteRendezvous = there) -> None:
            received[step].append(number)
            if len(received[step]) == len(wanted[step]):
                there.send("all have come", None)

        actions.append(partial(here.send, key, (size,)))
        actions.append(partial(there.recv_callback, key, send_on))  # type: ignore[arg-type]  # the waiter is not used
    in_any_order(processes, random, actions)
    assert {step: sorted(numbers) for step, numbers in received.items()} == wanted
    for step in range(4):
        for process in processes:
            process.steps.forget(step)
    processes.assert_empty()


def test_the_law_can_fail() -> None:
    """Two values of one key that change their places are found."""
    model = ModelOfProcesses()
    model.start(budget=8)
    for size in (1, 2):
        model.send(0, "0>1:a", size)
    model.expect(0, 1, ["0>1:a", "0>1:a"])
    model.processes[1].flush()
    model.processes.deliver((1, 0))
    model.processes[0].flush()
    (data,) = model.processes.channels[0, 1]
    assert isinstance(data, Data)
    model.processes.channels[0, 1][0] = data._replace(values=data.values[::-1])
    with pytest.raises(AssertionError):
        model.teardown()
