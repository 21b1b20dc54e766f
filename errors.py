"""The exception tree, with TensorFlow's status codes.

PartitaError                      the base of all
├── RequestError                  the graph, a feed, a name or a setting is wrong: change the request
│   ├── InvalidArgumentError      INVALID_ARGUMENT      a value that can never be right
│   ├── NotFoundError             NOT_FOUND             a node, op, file or resource that does not exist
│   ├── AlreadyExistsError        ALREADY_EXISTS        a name that is in use
│   ├── OutOfRangeError           OUT_OF_RANGE          an index past the end
│   ├── FailedPreconditionError   FAILED_PRECONDITION   right request, wrong state (an uninitialised variable)
│   ├── UnimplementedError        UNIMPLEMENTED         an op or a mode that Partita does not have
│   ├── PermissionDeniedError     PERMISSION_DENIED
│   └── UnauthenticatedError      UNAUTHENTICATED
├── RunError                      the request was right, the run failed: retry or look at the cause
│   ├── CancelledError            CANCELLED             the step was cancelled
│   ├── DeadlineExceededError     DEADLINE_EXCEEDED     virtual or wall time ran out
│   ├── AbortedError              ABORTED               a device restarted under the step
│   ├── UnavailableError          UNAVAILABLE           a device or task is gone
│   ├── ResourceExhaustedError    RESOURCE_EXHAUSTED    memory, simulated or real, is full
│   └── DataLossError             DATA_LOSS             a file is damaged
└── InternalFault                 a bug of Partita: please report it
    ├── InternalError             INTERNAL              an invariant of Partita did not hold
    └── UnknownError              UNKNOWN               an exception of another kind

A message says what thing is wrong, how, and what to do. The place (node, op, function, calls, device, inputs, frame,
step) is kept in attributes, so that programs need not parse text.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import ClassVar, Self

_CONTEXT = ("node", "op", "function", "calls", "device", "inputs", "frame", "step")
_SHOWN = 60  # letters of a caller's value


class Reason(Enum):
    """Why, where programs must tell errors of one code apart."""

    NO_DEVICE = "the cluster does not have the device that a node requests"
    NO_KERNEL = "no kind of device has a kernel for an op"
    NO_OP = "no op of that name is registered"
    NO_TIME = "nothing in a step takes time"


class PartitaError(Exception):
    """Base of all errors of this package: a status code, a message, and the place where it happened.

    `node`, `op`, `device`, `inputs`, `frame` and `step` are None if they do not apply or are not known yet; `inputs`
    are names of the input tensors of the node, or of the fed tensor that was refused. For a node in the body of a
    function, `function` is that function and `calls` are the nodes that called it, outermost first. `reason` is None
    where the code says enough.
    """

    code: ClassVar[str] = "UNKNOWN"

    def __init__(
        self,
        message: str,
        *,
        node: str | None = None,
        op: str | None = None,
        device: str | None = None,
        inputs: Sequence[str] | None = None,
        frame: str | None = None,
        step: int | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.node = node
        self.op = op
        self.device = device
        self.inputs = inputs
        self.frame = frame
        self.step = step
        self.function: str | None = None
        self.calls: tuple[str, ...] | None = None
        self.reason: Reason | None = None
        self._is_leaving = False

    def because(self, reason: Reason | None) -> Self:
        """Sets the reason; returns this error."""
        self.reason = reason
        return self

    def inside(self, function: str) -> Self:
        """Marks that the error leaves the body of a function, so the next call of `located` names the calling node.

        Returns this error.
        """
        self.function = function if self.function is None else self.function
        self._is_leaving = True
        return self

    def located(
        self,
        *,
        node: str | None = None,
        op: str | None = None,
        device: str | None = None,
        inputs: Sequence[str] | None = None,
        frame: str | None = None,
        step: int | None = None,
    ) -> Self:
        """Fills in the unknown parts of the place and returns this error, for `raise e.located(...)`."""
        if self._is_leaving:
            if node is not None:
                self._is_leaving = False
                self.calls = (node, *(self.calls or ()))
            self.step = step if self.step is None else self.step
            return self
        self.node = node if self.node is None else self.node
        self.op = op if self.op is None else self.op
        self.device = device if self.device is None else self.device
        self.inputs = inputs if self.inputs is None else self.inputs
        self.frame = frame if self.frame is None else self.frame
        self.step = step if self.step is None else self.step
        return self

    def __str__(self) -> str:
        place = ", ".join(f"{k} {_text(getattr(self, k))}" for k in _CONTEXT if getattr(self, k) is not None)
        return f"{self.message} [{place}]" if place else self.message


def _text(part: str | int | Sequence[str]) -> str:
    """One part of the place of an error."""
    return repr(part) if isinstance(part, str | int) else " ".join(map(repr, part))


class RequestError(PartitaError):
    """The graph, a feed, a name or a setting is wrong."""


class RunError(PartitaError):
    """The request was right, the run failed."""


class InternalFault(PartitaError):
    """A bug of Partita."""


class InvalidArgumentError(RequestError):
    """A value that can never be right."""

    code = "INVALID_ARGUMENT"


class NotFoundError(RequestError):
    """A node, op, file or resource that does not exist."""

    code = "NOT_FOUND"


class AlreadyExistsError(RequestError):
    """A name that is in use."""

    code = "ALREADY_EXISTS"


class OutOfRangeError(RequestError):
    """An index past the end."""

    code = "OUT_OF_RANGE"


class FailedPreconditionError(RequestError):
    """The right request in the wrong state."""

    code = "FAILED_PRECONDITION"


class UnimplementedError(RequestError):
    """An op or a mode that Partita does not have."""

    code = "UNIMPLEMENTED"


class PermissionDeniedError(RequestError):
    """The caller may not do this."""

    code = "PERMISSION_DENIED"


class UnauthenticatedError(RequestError):
    """The caller is not known."""

    code = "UNAUTHENTICATED"


class CancelledError(RunError):
    """The step was cancelled."""

    code = "CANCELLED"


class DeadlineExceededError(RunError):
    """Virtual or wall time ran out."""

    code = "DEADLINE_EXCEEDED"


class AbortedError(RunError):
    """A device restarted under the step; run it again."""

    code = "ABORTED"


class UnavailableError(RunError):
    """A device or task is gone."""

    code = "UNAVAILABLE"


class ResourceExhaustedError(RunError):
    """Memory, simulated or real, is full."""

    code = "RESOURCE_EXHAUSTED"


class DataLossError(RunError):
    """A file is damaged."""

    code = "DATA_LOSS"


class InternalError(InternalFault):
    """An invariant of Partita did not hold."""

    code = "INTERNAL"


class UnknownError(InternalFault):
    """An exception of another kind, such as one that a kernel raised."""

    code = "UNKNOWN"


def of_kernel(op: str, error: Exception) -> PartitaError:
    """The error of a kernel as a PartitaError; an exception of another kind becomes its cause."""
    if isinstance(error, PartitaError):
        return error
    wrapped: PartitaError
    if isinstance(error, MemoryError):
        wrapped = ResourceExhaustedError(f"OOM when allocating tensor: {error}")
    else:
        wrapped = UnknownError(f"the kernel of op {op!r} raised {type(error).__name__}: {error}")
    wrapped.__cause__ = error
    return wrapped


def shown(value: object) -> str:
    """A caller's value for an error text: its repr, cut to 60 letters."""
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
