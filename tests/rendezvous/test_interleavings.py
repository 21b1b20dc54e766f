"""Law: under any interleaving a message is received once and in order, or dropped by an abort; nothing is left."""

from __future__ import annotations

from collections import deque

import pytest
import trio
from hypothesis import given, settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from trio.testing import wait_all_tasks_blocked

from partita.errors import AbortedError, PartitaError
from partita.rendezvous import LocalRendezvous, Outcome, Received, Waiter

NAMES = st.sampled_from(["a", "b"])


class Model(RuleBasedStateMachine):
    """The callback interface, compared with two plain queues per key."""

    def __init__(self) -> None:
        super().__init__()
        self.rendezvous = LocalRendezvous()
        self.values: dict[str, deque[Received]] = {"a": deque(), "b": deque()}
        self.waiting: dict[str, deque[int]] = {"a": deque(), "b": deque()}
        self.handles: dict[int, tuple[str, Waiter]] = {}
        self.expected: dict[int, Outcome] = {}
        self.outcomes: dict[int, list[Outcome]] = {}
        self.error: PartitaError | None = None
        self.counter = 0

    @rule(name=NAMES, is_dead=st.booleans())
    def send(self, name: str, is_dead: bool) -> None:
        """Sends the next number."""
        self.counter += 1
        message = Received(self.counter, is_dead)
        if self.error is not None:
            with pytest.raises(PartitaError) as caught:
                self.rendezvous.send(name, *message)
            assert caught.value is self.error
            return
        self.rendezvous.send(name, *message)
        if self.waiting[name]:
            self.expected[self.waiting[name].popleft()] = message
        else:
            self.values[name].append(message)

    @rule(name=NAMES)
    def receive(self, name: str) -> None:
        """Receives the next message."""
        self.counter += 1
        who, outcomes = self.counter, list[Outcome]()
        self.outcomes[who] = outcomes
        self.handles[who] = (name, self.rendezvous.recv_callback(name, outcomes.append))
        if self.error is not None:
            self.expected[who] = self.error
        elif self.values[name]:
            self.expected[who] = self.values[name].popleft()
        else:
            self.waiting[name].append(who)

    @precondition(lambda self: self.handles)
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        """Cancels a receive, finished or not."""
        who = data.draw(st.sampled_from(sorted(self.handles)))
        name, handle = self.handles[who]
        assert handle.cancel() == (who in self.waiting[name])
        if who in self.waiting[name]:
            self.waiting[name].remove(who)

    @rule()
    def abort(self) -> None:
        """Aborts the rendezvous; may happen more than once."""
        error = AbortedError("stop")
        self.rendezvous.abort(error)
        self.error = self.error or error
        for name in self.waiting:
            self.expected |= dict.fromkeys(self.waiting[name], self.error)
            self.waiting[name].clear()
            self.values[name].clear()

    @invariant()
    def outcomes_agree(self) -> None:
        """Every receive has exactly the outcome the model gives it, or none yet."""
        for who, outcomes in self.outcomes.items():
            assert outcomes == ([self.expected[who]] if who in self.expected else [])

    @invariant()
    def table_agrees(self) -> None:
        """The table holds what the model holds, and no key without content."""
        statistics = self.rendezvous.statistics()
        assert statistics.queued == sum(map(len, self.values.values()))
        assert statistics.waiting == sum(map(len, self.waiting.values()))
        assert statistics.sends == statistics.receives + statistics.queued + statistics.dropped
        assert len(self.rendezvous._table) == sum(bool(self.values[n]) + bool(self.waiting[n]) for n in self.values)


TestInterleavings = Model.TestCase
TestInterleavings.settings = settings(max_examples=60, stateful_step_count=30)

ACTIONS = st.lists(st.tuples(st.sampled_from(["send", "recv", "cancel", "turn"]), NAMES), max_size=25)


@settings(max_examples=60)
@given(ACTIONS, st.booleans())
async def test_async_receives_lose_and_double_nothing(actions: list[tuple[str, str]], by_abort: bool) -> None:
    """Tasks may be cancelled at any moment: each message is received once, in order, or is still there at the end."""
    rendezvous = LocalRendezvous()
    sent: dict[str, list[int]] = {"a": [], "b": []}
    received: dict[str, list[int]] = {"a": [], "b": []}
    scopes: list[trio.CancelScope] = []

    async def receive(name: str, scope: trio.CancelScope) -> None:
        with scope:
            try:
                received[name].append((await rendezvous.recv(name)).value)
            except PartitaError:
                assert rendezvous.statistics().aborted

    async with trio.open_nursery() as nursery:
        for number, (action, name) in enumerate(actions):
            if action == "send":
                sent[name].append(number)
                rendezvous.send(name, number)
            elif action == "recv":
                scopes.append(trio.CancelScope())
                nursery.start_soon(receive, name, scopes[-1])
            elif action == "cancel" and scopes:
                scopes[number % len(scopes)].cancel()
            elif action == "turn":
                await wait_all_tasks_blocked()
        await wait_all_tasks_blocked()
        if by_abort:
            rendezvous.abort(AbortedError("stop"))
        else:
            nursery.cancel_scope.cancel()
    statistics = rendezvous.statistics()
    assert statistics.waiting == 0
    assert statistics.receives == len(received["a"]) + len(received["b"])
    for name in sent:
        assert sorted(received[name]) == sent[name][: len(received[name])]
