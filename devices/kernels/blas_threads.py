"""Holds BLAS to one thread while kernels multiply matrices, and gives the host its threads back soon after.

The threads of OpenBLAS spin while they wait for each other. Beside other work a product then costs many times what it
costs on one thread, and one product in eight has other last bits on two threads than on one. So a product runs on one
thread, and large ones are cut into parts instead, see `helpers`. The number of threads is a setting of the process, so
it is not changed around each product or step:

    FREE --the first product--> HELD --no product and no step for 50 ms--> FREE, as the host had set it

A thread of its own looks whether that time has passed; it exists only in HELD. A process that forks in HELD has a child
in FREE.

A product of `run` is computed in HELD without a lock: it stores the time before it reads `is_held`, and the thread that
lets go clears `is_held` before it reads that time. Whichever comes first, either the product sees that the limit is
gone, or the thread sees that there is a product. On a busy machine 50 ms may pass before the product then begins; so
`run` looks afterwards whether the limit was let go meanwhile, and has it computed again if it was.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from functools import wraps
from importlib import import_module
from time import monotonic, sleep
from types import TracebackType
from typing import Any, ParamSpec, Protocol, Self, TypeVar
from weakref import WeakSet

from .registry import Construction, Factory, Kernel

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")

IDLE_S = 0.05
"""after so many seconds without a step the host gets its threads back"""
UNTHREADED = 4096
"""with fewer multiplications no product has several threads: OpenBLAS begins at 4,096 complex or 9,216 real ones"""
_SMALL_MATRIX = 256  # numbers: its product with itself takes `UNTHREADED` multiplications


class Library(Protocol):
    """A loaded BLAS library."""

    @property
    def num_threads(self) -> int:
        """How many threads its products use."""

    def set_num_threads(self, num_threads: int) -> None:
        """Changes that for the whole process."""


class OpenBlas:
    """A library of OpenBLAS with threads of its own, by way of threadpoolctl."""

    def __init__(self, controller: Any) -> None:  # Any: of threadpoolctl, which has no types
        self._controller = controller

    @property
    def num_threads(self) -> int:
        """How many threads its products use."""
        return int(self._controller.num_threads)

    def set_num_threads(self, num_threads: int) -> None:
        """Changes that for the whole process.

        Since version 3.8 of threadpoolctl only the thread that has set the number first may change it, and others are
        ignored silently, until somebody clears that.
        """
        clear = getattr(self._controller, "clear_controlling_thread", lambda *, force: None)
        clear(force=True)
        self._controller.set_num_threads(num_threads)
        clear(force=True)


def loaded_libraries() -> Sequence[Library]:
    """The BLAS libraries that this process has loaded so far, and whose threads can be limited. Takes a millisecond.

    With MKL, BLIS and OpenMP the number is a setting of each thread, which no other thread could restore: they keep
    their threads.
    """
    controllers: Any = (
        import_module("threadpoolctl").ThreadpoolController().lib_controllers
    )  # late: most never multiply
    return [
        OpenBlas(controller)
        for controller in controllers
        if controller.internal_api == "openblas" and controller.threading_layer != "openmp"
    ]


class ThreadLimit:
    """The limit of one thread, and who needs it. All methods may be called from any thread."""

    def __init__(
        self,
        libraries: Callable[[], Sequence[Library]] = loaded_libraries,
        clock: Callable[[], float] = monotonic,
        wait: Callable[[float], object] = sleep,
    ) -> None:
        self.is_held = False
        self._libraries = libraries
        self._clock = clock
        self._wait = wait
        self._loaded: Sequence[Library] | None = None
        self._used_s = 0.0
        self._releases = 0  # how often the limit was let go
        self._holders: WeakSet[Hold] = WeakSet()
        self._host: list[tuple[Library, int]] = []  # libraries whose threads were taken, and how many they had
        self._is_watched = False
        self._lock = threading.Lock()

    def look_up_libraries(self) -> None:
        """Finds the libraries before the first product, which may be computed in the thread of an event loop."""
        with self._lock:
            if self._loaded is None:
                self._loaded = self._libraries()

    def run(
        self, product: Callable[_Parameters, _Result], *inputs: _Parameters.args, **how: _Parameters.kwargs
    ) -> _Result:
        """Computes a product, which takes less than `IDLE_S` and does not change its inputs, on one thread."""
        releases = self._releases  # read first, so that none is missed
        self._begin()
        result = product(*inputs, **how)
        if self._releases == releases:
            return result
        with self.hold():
            return product(*inputs, **how)

    def _begin(self) -> None:
        self._used_s = self._clock()
        if not self.is_held:
            self._take()

    def hold(self) -> Hold:
        """A `with` block of any length whose products run on one thread."""
        return Hold(self)

    def keep(self) -> None:
        """Called after a step: if the limit is held, its time starts again."""
        if self.is_held:
            self._used_s = self._clock()

    def forget_libraries(self) -> None:
        """Called when another BLAS library may have been loaded: they are looked up again."""
        with self._lock:
            self.is_held = False  # so that the next product takes the limit of the new one, too
            self._loaded = None

    def release_if_idle(self) -> float:
        """Gives the host its threads back if it is time; else returns in how many seconds to ask again."""
        with self._lock:
            was_held, self.is_held = self.is_held, False  # from here on products wait for the lock
            left_s = IDLE_S if self._holders else self._used_s + IDLE_S - self._clock()
            if left_s > 0:
                self.is_held = was_held
                return left_s
            self._restore()
            self._is_watched = False
            return 0.0

    def _take(self) -> None:
        with self._lock:
            if self.is_held or not (self._is_watched or self._watch()):
                return
            if self._loaded is None:
                self._loaded = self._libraries()
            for library in self._loaded:
                num_threads = library.num_threads
                if num_threads > 1:
                    self._host.append((library, num_threads))
                    library.set_num_threads(1)
            self.is_held = True

    def _watch(self) -> bool:
        """Starts the thread that lets go; False if there can be no further threads, as in an ending process."""
        try:
            threading.Thread(target=self._let_go, name="partita BLAS threads", daemon=True).start()
        except RuntimeError:
            return False
        self._is_watched = True
        return True

    def _let_go(self) -> None:
        while left_s := self.release_if_idle():
            self._wait(left_s)

    def _restore(self) -> None:
        self._releases += 1
        while self._host:
            library, num_threads = self._host[-1]
            if library.num_threads == 1:  # or the host has changed it meanwhile
                library.set_num_threads(num_threads)
            self._host.pop()

    def _forked(self) -> None:
        """FREE, in a new process, of whose threads only the one that forked lives on."""
        self._lock = threading.Lock()
        self._is_watched = self.is_held = False
        self._holders.clear()
        self._restore()

    def survive_forks(self) -> None:
        """Gives forked processes the threads of the host; for limits that live as long as the process."""
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forked)


class Hold:
    """A `with` block that needs the limit. The limit refers to it weakly: an interrupt cannot leave it behind."""

    __slots__ = ("__weakref__", "_limit")

    def __init__(self, limit: ThreadLimit) -> None:
        self._limit = limit

    def __enter__(self) -> Self:
        self._limit._holders.add(self)
        self._limit._begin()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._limit._used_s = self._limit._clock()
        self._limit._holders.discard(self)


LIMIT = ThreadLimit()
LIMIT.survive_forks()


def one_blas_thread(factory: Factory) -> Factory:
    """A factory of kernels whose linear algebra runs on one thread, for those that call LAPACK."""

    @wraps(factory)
    def limited(node: Construction) -> Kernel:
        kernel = factory(node)

        @wraps(kernel)
        def compute(*inputs: Any) -> Any:  # Any: as kernels
            if max(value.size for value in inputs) < _SMALL_MATRIX:
                return kernel(*inputs)
            with LIMIT.hold():
                return kernel(*inputs)

        return compute

    return limited
