"""Helpers compute parts of a kernel: same results, the error of the first part, and none runs after the call."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.devices.kernels.helpers import Helpers

POOLS = [Helpers(size) for size in range(4)]


class Asked(Exception):
    """Raised by a part."""


@given(st.sampled_from(POOLS), st.integers(1, 12))
def test_results_are_in_order_for_any_number_of_helpers(helpers: Helpers, parts: int) -> None:
    """Also for none, and for more parts than threads."""
    assert helpers.run(lambda number: number * number, range(parts)) == [number**2 for number in range(parts)]


@given(st.sampled_from(POOLS), st.integers(1, 8), st.sets(st.integers(0, 7), min_size=1))
def test_the_first_part_that_fails_gives_the_error(helpers: Helpers, parts: int, failing: set[int]) -> None:
    """Whoever computes which part, and whichever fails first in time; nothing runs when the error is raised."""
    running: set[int] = set()

    def compute(number: int) -> int:
        running.add(number)
        try:
            if number in failing:
                raise Asked(number)
            return number
        finally:
            running.remove(number)

    expected = min((number for number in failing if number < parts), default=None)
    if expected is None:
        assert helpers.run(compute, range(parts)) == list(range(parts))
        return
    with pytest.raises(Asked) as raised:
        helpers.run(compute, range(parts))
    assert raised.value.args == (expected,)
    assert not running


def with_one_part_in_a_helper(helpers: Helpers, in_caller: Callable[[], None], in_helper: Callable[[], None]) -> None:
    """Runs two parts, one of them in a helper: the caller's begins when the helper's has begun."""
    caller, begun = threading.get_ident(), threading.Event()

    def compute(_number: int) -> None:
        if threading.get_ident() == caller:
            begun.wait()
            in_caller()
        else:
            begun.set()
            in_helper()

    helpers.run(compute, range(2))


def test_parts_run_in_another_thread() -> None:
    """A helper computes with floating-point warnings off, as a step does."""
    threads: set[int] = set()

    def divide() -> None:
        threads.add(threading.get_ident())
        np.ones(1) / np.zeros(1)

    with_one_part_in_a_helper(Helpers(1), lambda: None, divide)
    assert threads
    assert threading.get_ident() not in threads


def test_an_interrupt_waits_for_the_part_of_a_helper() -> None:
    """KeyboardInterrupt in the caller is raised when the helper has stopped writing."""
    interrupted, written = threading.Event(), []

    def interrupt() -> None:
        interrupted.set()
        raise KeyboardInterrupt

    def write() -> None:
        interrupted.wait()
        written.append(1)

    with pytest.raises(KeyboardInterrupt):
        with_one_part_in_a_helper(Helpers(1), interrupt, write)
    assert written == [1]


def test_a_busy_helper_is_not_waited_for() -> None:
    """While the only helper works for another thread, the caller computes all parts itself."""
    helpers, busy, free = Helpers(1), threading.Event(), threading.Event()

    def occupy(_number: int) -> None:
        busy.set()
        free.wait()

    other = threading.Thread(target=helpers.run, args=(occupy, range(2)))
    other.start()
    busy.wait()
    assert helpers.run(lambda _number: threading.get_ident(), range(3)) == [threading.get_ident()] * 3
    free.set()
    other.join()


def test_parts_may_have_parts() -> None:
    """A part that is cut itself waits for nobody who waits for it."""
    helpers = Helpers(1)
    assert helpers.run(lambda n: sum(helpers.run(lambda m: n * m, range(4))), range(4)) == [0, 6, 12, 18]


def test_helpers_end_when_there_is_nothing_to_do() -> None:
    """After a while without parts their threads are gone, and the next call starts new ones."""
    helpers = Helpers(2)
    for _ in range(2):
        before = set(threading.enumerate())
        assert helpers.run(lambda number: number, range(3)) == [0, 1, 2]
        for thread in set(threading.enumerate()) - before:
            thread.join()
        assert helpers._running == 0


def test_a_process_that_can_start_no_thread_computes_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """As at the end of an interpreter."""

    def refuse(_thread: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    assert Helpers(2).run(lambda number: number, range(3)) == [0, 1, 2]


def test_a_forked_process_has_helpers_of_its_own() -> None:
    """In the child there is none until one is needed."""
    helpers = Helpers(1)
    helpers.run(lambda number: number, range(2))
    helpers._forked()
    assert helpers._running == 0
    with_one_part_in_a_helper(helpers, lambda: None, lambda: None)
    assert helpers._running == 1
