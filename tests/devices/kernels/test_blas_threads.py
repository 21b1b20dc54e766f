"""The limit of one BLAS thread: taken for a product, given back 50 ms after the last product or step."""

from __future__ import annotations

import threading
from queue import SimpleQueue

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from partita.devices.kernels import blas_threads
from partita.devices.kernels.blas_threads import IDLE_S, LIMIT, ThreadLimit
from partita.devices.kernels.linalg.products import matrix_product
from tests.devices.kernels.blas import released
from tests.devices.kernels.harness import run


class Library:
    """A BLAS library of the host, with its number of threads."""

    def __init__(self, num_threads: int) -> None:
        self.num_threads = num_threads

    def set_num_threads(self, num_threads: int) -> None:
        self.num_threads = num_threads


class Host:
    """A process with two BLAS libraries, a clock, and a limit whose thread sleeps until `wake`."""

    def __init__(self) -> None:
        self.now_s = 100.0
        self.libraries = [Library(8), Library(1)]
        self.sleeps: SimpleQueue[float] = SimpleQueue()
        self._wakes = threading.Semaphore(0)
        self.limit = ThreadLimit(lambda: self.libraries, lambda: self.now_s, self._sleep)

    def _sleep(self, seconds: float) -> None:
        self.sleeps.put(seconds)
        self._wakes.acquire()

    @property
    def threads(self) -> list[int]:
        return [library.num_threads for library in self.libraries]

    def begin(self) -> None:
        """A product begins; returns when the thread of the limit sleeps."""
        was_watched = self.limit._is_watched
        self.limit.run(lambda: None)
        if not was_watched:
            self.sleeps.get()

    def wait(self, seconds: float) -> None:
        """Lets time pass, not enough to let go; returns when the thread has looked and sleeps again."""
        self.now_s += seconds
        self._wakes.release()
        self.sleeps.get()

    def end(self) -> None:
        """Lets time pass until the thread has let go."""
        self.now_s += 2 * IDLE_S
        while self.limit._is_watched:
            self._wakes.release()


def test_the_limit_is_taken_for_a_product_and_given_back_when_no_other_has_followed() -> None:
    """Each library has one thread until 50 ms after the last product, and then as many as before."""
    host = Host()
    assert (host.threads, host.limit.is_held) == ([8, 1], False)
    host.begin()
    assert (host.threads, host.limit.is_held) == ([1, 1], True)
    host.wait(IDLE_S / 2)
    host.begin()
    host.wait(IDLE_S * 0.75)
    assert host.threads == [1, 1]
    host.end()
    assert (host.threads, host.limit.is_held) == ([8, 1], False)


def test_steps_keep_the_limit_but_do_not_take_it() -> None:
    """A step without products starts the time again, if the limit is held."""
    host = Host()
    host.limit.keep()
    assert host.threads == [8, 1]
    host.begin()
    host.wait(IDLE_S / 2)
    host.limit.keep()
    host.wait(IDLE_S * 0.75)
    assert host.threads == [1, 1]
    host.end()
    assert host.threads == [8, 1]


def test_the_limit_can_be_taken_again() -> None:
    """What was given back can be taken, as often as needed."""
    host = Host()
    for _ in range(3):
        host.begin()
        assert host.threads == [1, 1]
        host.end()
        assert host.threads == [8, 1]


def test_a_block_holds_the_limit_for_as_long_as_it_runs() -> None:
    """The time begins at the end of the block."""
    host = Host()
    with host.limit.hold():
        host.wait(100 * IDLE_S)
        assert host.threads == [1, 1]
    host.wait(IDLE_S / 2)
    assert host.threads == [1, 1]
    host.end()
    assert host.threads == [8, 1]


def test_a_block_that_an_error_ends_needs_the_limit_no_longer() -> None:
    """The error passes, the limit goes."""
    host = Host()

    def fail() -> None:
        with host.limit.hold():
            raise ValueError("as asked")

    with pytest.raises(ValueError, match="as asked"):
        fail()
    host.end()
    assert host.threads == [8, 1]


def test_a_product_that_is_held_up_until_the_limit_is_gone_is_computed_again() -> None:
    """A busy machine may stop it for longer than the limit is kept: its result is that of one thread all the same."""
    host = Host()
    seen: list[list[int]] = []

    def product(number: int, *, by: int) -> int:
        if not seen:
            host.sleeps.get()
            host.end()
        seen.append(host.threads)
        return number * by

    assert host.limit.run(product, 3, by=2) == 6
    assert seen == [[8, 1], [1, 1]]
    host.sleeps.get()
    assert host.limit.run(product, 4, by=2) == 8
    assert seen == [[8, 1], [1, 1], [1, 1]]
    host.end()
    assert host.threads == [8, 1]


def test_a_host_that_sets_its_threads_meanwhile_keeps_them() -> None:
    """Only what the limit has set is undone."""
    host = Host()
    host.begin()
    host.libraries[0].set_num_threads(3)
    host.end()
    assert host.threads == [3, 1]


def test_a_library_that_is_loaded_later_is_limited_too() -> None:
    """Libraries are looked up again after `forget_libraries`, without losing what others had."""
    host = Host()
    host.begin()
    host.libraries = [*host.libraries, Library(4)]
    host.begin()
    assert host.threads == [1, 1, 4]
    host.limit.forget_libraries()
    host.begin()
    assert host.threads == [1, 1, 1]
    host.end()
    assert host.threads == [8, 1, 4]


def test_without_a_thread_to_give_it_back_the_limit_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """In an ending process, which can start no thread, products run as the host has set it."""

    def refuse(_thread: object) -> None:
        raise RuntimeError("can't start new thread")

    host = Host()
    monkeypatch.setattr(threading.Thread, "start", refuse)
    host.limit.run(lambda: None)
    assert (host.threads, host.limit.is_held) == ([8, 1], False)


def test_a_forked_process_has_the_threads_of_the_host() -> None:
    """The child, in which the thread of the limit does not live on, begins without it and can take it."""
    host = Host()
    host.begin()
    host.limit._forked()
    assert (host.threads, host.limit.is_held) == ([8, 1], False)
    host.begin()
    assert host.threads == [1, 1]
    host.end()
    assert host.threads == [8, 1]


def test_the_libraries_of_this_process_are_limited_and_released() -> None:
    """A product of 16,384 multiplications takes the real limit; then threadpoolctl says what it said before."""
    released()
    before = threadpool_info()
    a = np.ones((1, 128), np.float32)
    assert matrix_product(a, np.ones((128, 128), np.float32)).shape == (1, 128)
    assert LIMIT.is_held
    assert {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"} == {1}
    released()
    assert threadpool_info() == before


def test_small_products_leave_the_host_alone() -> None:
    """No BLAS gives a product of a few thousand multiplications to several threads."""
    released()
    matrix_product(np.ones((8, 16), np.float32), np.ones((16, 16), np.float32))
    assert not LIMIT.is_held
    assert blas_threads.UNTHREADED > 8 * 16 * 16


@pytest.mark.parametrize("op", ["MatrixExponential", "MatrixLogarithm"])
def test_functions_of_scipy_have_one_thread_for_matrices_of_any_size(op: str) -> None:
    """They solve triangles, which LAPACK gives to all threads even for two rows."""
    released()
    run(op, np.eye(2, dtype=np.complex64))
    assert LIMIT.is_held
    released()
