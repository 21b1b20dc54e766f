"""Carries out the steps of iterators on behalf of calls: calls the functions they ask for, and pauses.

A computation outlives a step that is cancelled. It then stands where it is, and the next call goes on with it; a
function that it was waiting for is called again. So no element is lost:

    RUNNING --asks for a function--> WAITING --results or error--> RUNNING --returns or raises--> ended
       `--the call is cancelled--> SUSPENDED <--the call is cancelled-- WAITING
                                      `--another call goes on with it--> RUNNING

The loop below does not recurse, however many functions are called for one element.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ....errors import FailedPreconditionError, PartitaError, of_kernel
from ..functions import Failed, Function, Scope
from ..registry import Call
from .dataset import CapturedFunction, Element, ElementSpec, Invocation, Iterator, PullSteps

Done = Callable[[Any], None]  # takes what the steps return


class Computation:
    """Steps that are carried out for one call after another, until they end; `op` is named where they break down."""

    __slots__ = (
        "_answer",
        "_call",
        "_done",
        "_error",
        "_failed",
        "_functions",
        "_is_running",
        "_op",
        "_scope",
        "_steps",
        "_wanted",
    )

    def __init__(self, steps: PullSteps[Any], scope: Scope, op: str = "dataset") -> None:
        self._steps = steps
        self._op = op
        self._scope = scope
        self._answer: Sequence[Any] | None = None
        self._error: PartitaError | None = None
        self._wanted: Invocation | None = None
        self._is_running = False
        self._functions: dict[CapturedFunction, Function] = {}

    def go_on(self, call: Call, done: Done, failed: Failed) -> None:
        """Begins, or goes on after another call was cancelled; `done` or `failed` is called once."""
        self._call, self._done, self._failed = call, done, failed
        self._functions.clear()
        self._run()

    def _run(self) -> None:
        self._is_running = True
        try:
            while self._goes_on():
                pass
        finally:
            self._is_running = False

    def _goes_on(self) -> bool:
        """Does one step; returns whether the next one can be done at once."""
        if self._wanted is None:
            error, self._error = self._error, None
            answer, self._answer = self._answer, None
            try:
                self._wanted = self._steps.send(answer) if error is None else self._steps.throw(error)
            except StopIteration as end:
                self._done(end.value)
                return False
            except Exception as raised:  # noqa: BLE001 - numpy may raise anything
                self._failed(of_kernel(self._op, raised))
                return False
            if self._wanted is None:
                return not self._call.pause(self._run)
        self._invoke(self._wanted)
        return self._wanted is None

    def _invoke(self, wanted: Invocation) -> None:
        function = self._functions.get(wanted.function)
        if function is None:
            function = self._functions[wanted.function] = self._call.function(wanted.function.function, self._scope)
        function(wanted.arguments, self._returned, self._raised)

    def _returned(self, results: Sequence[Any]) -> None:
        self._wanted, self._answer = None, results
        if not self._is_running:
            self._run()

    def _raised(self, error: PartitaError) -> None:
        self._wanted, self._error = None, error
        if not self._is_running:
            self._run()


def compute(call: Call, steps: PullSteps[Any], done: Done, op: str = "dataset") -> None:
    """Carries out steps for one call alone, which fails if they do."""
    Computation(steps, Scope(), op).go_on(call, done, call.fail)


class _Pull:
    """A call that waits for an element; `take` ends it with an element, or with None at the end of the sequence."""

    __slots__ = ("call", "take")

    def __init__(self, call: Call, take: Callable[[Element | None], None]) -> None:
        self.call = call
        self.take = take


class IteratorResource:
    """An iterator that steps pull elements from, one after the other; `form` is that of its elements."""

    def __init__(self, form: ElementSpec) -> None:
        self.form = form
        self._iterator: Iterator | None = None
        self._scope = Scope()
        self._computation: Computation | None = None
        self._of: Iterator | None = None  # the iterator that the computation advances
        self._active: _Pull | None = None
        self._waiting: deque[_Pull] = deque()
        self._is_serving = False

    @property
    def is_initialised(self) -> bool:
        """Whether elements can be pulled."""
        return self._iterator is not None

    def initialise(self, iterator: Iterator) -> None:
        """Begins a sequence; a pull that is under way still gets its element from the one before."""
        self._iterator, self._scope = iterator, Scope()

    def pull(self, call: Call, take: Callable[[Element | None], None]) -> None:
        """Gives `take` the next element, after the pulls before; FailedPreconditionError without a sequence."""
        if self._iterator is None:
            raise FailedPreconditionError(
                "GetNext() failed because the iterator has not been initialized. Ensure that you have run the "
                "initializer operation for this iterator before getting the next element."
            )
        pull = _Pull(call, take)
        self._waiting.append(pull)
        self._serve()
        if self._active is pull or pull in self._waiting:
            call.on_cancel(partial(self._step_ended, call.step))

    def _serve(self) -> None:
        """Serves waiting pulls until one has to wait for a function."""
        if self._is_serving:
            return
        self._is_serving = True
        try:
            while self._active is None and self._waiting:
                self._active = self._waiting.popleft()
                self._current().go_on(self._active.call, self._got, self._failed)
        finally:
            self._is_serving = False

    def _current(self) -> Computation:
        """The computation that was suspended, or a new one."""
        assert self._iterator is not None  # pulls are refused before
        if self._computation is None or self._of is not self._iterator:
            self._computation, self._of = Computation(self._iterator.next(), self._scope), self._iterator
        return self._computation

    def _got(self, element: Element | None) -> None:
        self._ended().take(element)
        self._serve()

    def _failed(self, error: PartitaError) -> None:
        self._ended().call.fail(error)
        self._serve()

    def _ended(self) -> _Pull:
        pull, self._active, self._computation = self._active, None, None
        assert pull is not None  # only a pull that is active ends
        return pull

    def _step_ended(self, step: object) -> None:
        """Takes the pulls of a step that has failed out of the line; the computation stays as it is."""
        self._waiting = deque(pull for pull in self._waiting if pull.call.step is not step)
        if self._active is not None and self._active.call.step is step:
            self._active = None
        self._serve()
