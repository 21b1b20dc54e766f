"""Calls in flight: each ends once, few are in flight, and errors come in the order of the calls."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, Future
from functools import partial
from typing import Any

import pytest
from hypothesis import given, strategies as st

from partita.errors import UnavailableError
from partita.scenarios import SerialExecutor
from partita.scenarios.executors.in_flight import SettledCall, in_order, settled
from tests.scenarios.executors.called import fails, squared


class DrawnExecutor(Executor):
    """Ends calls in an order that a test draws: at each submission some of those before it; at most `_max_workers`."""

    def __init__(self, workers: int, order: list[int]) -> None:
        self._max_workers = workers
        self._order = order
        self._waiting: list[tuple[Future[Any], Callable[[], object]]] = []
        self.most = 0

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:  # Any: as the base's
        future: Future[Any] = Future()
        self._waiting.append((future, partial(fn, *args, **kwargs)))
        self.most = max(self.most, len(self._waiting))
        if len(self._waiting) == 2 * self._max_workers:
            self._end(self._order.pop() if self._order else 0)
        return future

    def _end(self, place: int) -> None:
        future, call = self._waiting.pop(place % len(self._waiting))
        try:
            future.set_result(call())
        except ValueError as error:
            future.set_exception(error)

    def end_all(self) -> None:
        """Ends what still waits."""
        while self._waiting:
            self._end(self._order.pop() if self._order else 0)


class Lazy:
    """Calls that, when the last is taken, let the executor end what waits."""

    def __init__(self, executor: DrawnExecutor, calls: list[Callable[[], object]]) -> None:
        self._executor, self._calls = executor, calls

    def __iter__(self) -> Any:  # Any: a generator of calls
        yield from self._calls
        self._executor.end_all()


@given(st.integers(1, 3), st.integers(0, 20), st.lists(st.integers(0, 10), max_size=20))
def test_every_call_ends_once(workers: int, many: int, order: list[int]) -> None:
    """Whatever the order in which an executor ends them, and never more than two a worker are in flight."""
    executor = DrawnExecutor(workers, order)
    calls: list[Callable[[], object]] = [partial(squared, number) for number in range(many)]
    ended = [call for batch in settled(executor, Lazy(executor, calls)) for call in batch]
    assert sorted(ended) == [SettledCall(number, number * number, None) for number in range(many)]
    assert executor.most <= 2 * workers


@given(st.integers(1, 3), st.lists(st.booleans(), min_size=1, max_size=12), st.lists(st.integers(0, 10), max_size=12))
def test_the_first_error_of_the_list_is_raised(workers: int, works: list[bool], order: list[int]) -> None:
    """As if the calls had run one after another."""
    calls: list[Callable[[], object]] = [
        partial(squared, number) if fine else partial(fails, f"call {number}") for number, fine in enumerate(works)
    ]
    executor = DrawnExecutor(workers, order)

    def run() -> list[object]:
        return in_order(executor, Sized(executor, calls))

    if all(works):
        assert run() == [number * number for number in range(len(works))]
    else:
        with pytest.raises(ValueError, match=f"^call {works.index(False)}$"):
            run()


class Sized(list[Callable[[], object]]):
    """Calls with a length that end as `Lazy` ones."""

    def __init__(self, executor: DrawnExecutor, calls: list[Callable[[], object]]) -> None:
        super().__init__(calls)
        self._lazy = Lazy(executor, calls)

    def __iter__(self) -> Any:  # Any: a generator of calls
        return iter(self._lazy)


def test_calls_in_this_process_run_one_after_another() -> None:
    """Each ends before the next is taken."""
    ran: list[int] = []
    calls = [partial(ran.append, number) for number in range(3)]
    for number, batch in enumerate(settled(SerialExecutor(), calls)):
        assert (len(batch), ran) == (1, list(range(number + 1)))


class BrokenPool(DrawnExecutor):
    """Takes one call, which never ends, and no other."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:  # Any: as the base's
        if self._waiting:
            raise BrokenExecutor("a process has died")
        return super().submit(fn, *args, **kwargs)


def test_an_executor_that_is_broken_ends_the_sweep() -> None:
    """Calls in flight are cancelled, and the error says what to do."""
    executor = BrokenPool(2, [])
    with pytest.raises(UnavailableError, match="a process has died; give another one"):
        list(settled(executor, [partial(squared, 1)] * 2))
    assert executor._waiting[0][0].cancelled()


def test_a_block_that_is_left_cancels_what_is_in_flight() -> None:
    """Nobody waits for a queue."""
    executor = DrawnExecutor(2, [])
    batches = settled(executor, [partial(squared, number) for number in range(9)])
    assert next(batches) == [SettledCall(0, 0, None)]
    batches.close()
    assert [future.cancelled() for future, _ in executor._waiting] == [True] * 3
