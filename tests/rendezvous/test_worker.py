"""The rendezvous of a worker checks incarnations at receives from other tasks, and only there."""

from __future__ import annotations

import pytest

from partita.errors import AbortedError, PartitaError
from partita.rendezvous import Key, LocalRendezvous, Outcome, Received, WorkerRendezvous

TASKS = [f"/job:worker/replica:0/task:{task}" for task in (0, 1, 10)]
OWN, OTHER, SIMILAR = (f"{task}/device:CPU:0" for task in TASKS)
INCARNATIONS = {OWN: 5, OTHER: 7, SIMILAR: 9}


def view(shared: LocalRendezvous, **more: object) -> WorkerRendezvous:
    """The rendezvous of the worker of the first task."""
    return WorkerRendezvous(shared, TASKS[0], lambda device: INCARNATIONS.get(device, 0), **more)  # type: ignore[arg-type]  # of the keywords under test


def received(rendezvous: WorkerRendezvous, key: Key) -> list[Outcome]:
    """The outcomes of a receive, a list that the rendezvous appends to."""
    outcomes: list[Outcome] = []
    rendezvous.recv_callback(str(key), outcomes.append)
    return outcomes


@pytest.mark.parametrize(("source", "incarnation"), [(OWN, 1), (OWN, 5), (OTHER, 7), (SIMILAR, 9), ("/cpu:0", 3)])
def test_a_tensor_from_the_own_task_or_a_current_incarnation_is_received(source: str, incarnation: int) -> None:
    """An unknown source device has no incarnation to compare with."""
    shared = LocalRendezvous()
    key = Key(source, incarnation, OWN, "x")
    outcomes = received(view(shared), key)
    assert outcomes == []
    shared.send(str(key), 3)
    assert outcomes == [Received(3, False)]


async def test_a_receive_from_an_old_incarnation_fails() -> None:
    """With TensorFlow's message, for both kinds of receive, also if the message was sent."""
    shared = LocalRendezvous()
    key = Key(OTHER, 6, OWN, "x")
    message = (
        r"^RecvTensor expects a different device incarnation: 6 vs\. 7\. Your worker job was probably restarted\. "
    )
    for _ in range(2):
        (outcome,) = received(view(shared), key)
        assert isinstance(outcome, AbortedError)
        with pytest.raises(AbortedError, match=message):
            await view(shared).recv(str(key))
        assert shared.statistics().waiting == 0
        shared.send(str(key), 3)


def test_another_policy_may_accept_it() -> None:
    shared, calls = LocalRendezvous(), list[tuple[str, int, int]]()

    def tolerate(device: str, expected: int, actual: int) -> PartitaError | None:
        calls.append((device, expected, actual))
        return None

    outcomes = received(view(shared, policy=tolerate), Key(OTHER, 6, OWN, "x"))
    shared.send(Key(OTHER, 6, OWN, "x"), 3)
    assert outcomes == [Received(3, False)]
    assert calls == [(OTHER, 6, 7)]


def test_an_abort_ends_the_shared_rendezvous_and_calls_on_abort() -> None:
    shared, errors = LocalRendezvous(), list[PartitaError]()
    key = Key(OTHER, 7, OWN, "x")
    outcomes = received(view(shared), key)
    error = AbortedError("over")
    view(shared, on_abort=errors.append).abort(error)
    assert outcomes == errors == [error]
    assert shared.waiting() == [key]
    view(shared).close()
    assert view(shared).statistics().aborted
