"""A worker's view of a rendezvous: incarnations are looked at where something comes from another task, only there."""

from __future__ import annotations

import pytest

from partita.errors import AbortedError, PartitaError
from partita.rendezvous import Key, LocalRendezvous, Outcome, Received, WorkerRendezvous

TASKS = [f"/job:worker/replica:0/task:{task}" for task in (0, 1, 10)]
HERE, THERE, ALIKE = (f"{task}/device:CPU:0" for task in TASKS)
LIVES = {HERE: 5, THERE: 7, ALIKE: 9}


def view(shared: LocalRendezvous, **more: object) -> WorkerRendezvous:
    """The view of the first task."""
    return WorkerRendezvous(shared, TASKS[0], lambda device: LIVES.get(device, 0), **more)  # type: ignore[arg-type]  # of the keywords under test


def received(meeting: WorkerRendezvous, key: Key) -> list[Outcome]:
    """What a receive has been told so far."""
    outcomes: list[Outcome] = []
    meeting.recv_callback(str(key), outcomes.append)
    return outcomes


@pytest.mark.parametrize(("source", "incarnation"), [(HERE, 1), (HERE, 5), (THERE, 7), (ALIKE, 9), ("/cpu:0", 3)])
def test_a_tensor_of_the_task_itself_or_of_a_life_that_goes_on_arrives(source: str, incarnation: int) -> None:
    """A source that nobody has has no life to compare with."""
    shared = LocalRendezvous()
    key = Key(source, incarnation, HERE, "x")
    outcomes = received(view(shared), key)
    assert outcomes == []
    shared.send(str(key), 3)
    assert outcomes == [Received(3, False)]


async def test_a_tensor_of_a_past_life_is_not_waited_for() -> None:
    """In TensorFlow's words, by both ways to receive, and even if it is there."""
    shared = LocalRendezvous()
    key = Key(THERE, 6, HERE, "x")
    words = r"^RecvTensor expects a different device incarnation: 6 vs\. 7\. Your worker job was probably restarted\. "
    for _ in range(2):
        (outcome,) = received(view(shared), key)
        assert isinstance(outcome, AbortedError)
        with pytest.raises(AbortedError, match=words):
            await view(shared).recv(str(key))
        assert shared.statistics().waiting == 0
        shared.send(str(key), 3)


def test_another_policy_decides_otherwise() -> None:
    shared, asked = LocalRendezvous(), list[tuple[str, int, int]]()

    def tolerate(device: str, expected: int, actual: int) -> PartitaError | None:
        asked.append((device, expected, actual))
        return None

    outcomes = received(view(shared, policy=tolerate), Key(THERE, 6, HERE, "x"))
    shared.send(Key(THERE, 6, HERE, "x"), 3)
    assert outcomes == [Received(3, False)]
    assert asked == [(THERE, 6, 7)]


def test_an_abort_ends_the_rendezvous_for_all_and_is_heard_of() -> None:
    shared, heard = LocalRendezvous(), list[PartitaError]()
    key = Key(THERE, 7, HERE, "x")
    outcomes = received(view(shared), key)
    error = AbortedError("over")
    view(shared, on_abort=heard.append).abort(error)
    assert outcomes == heard == [error]
    assert shared.waiting() == [key]
    view(shared).close()
    assert view(shared).statistics().aborted
