"""Which error ends the process with which exit code.

Flows in: any exception of a command. Flows out: an exit code and one line of text. Always holds: what a flag or a
file can cause before the run starts is a `ConfigurationError`; an op that Partita does not have is an
`UnimplementedError`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ...errors import NotFoundError, PartitaError, RequestError, UnimplementedError

RUN_FAILED = 1
BAD_CONFIGURATION = 2
UNSUPPORTED_OP = 3
_NO_KERNEL = "No OpKernel was registered"


class ConfigurationError(RequestError):
    """A flag, a file, a feed or a name on the command line is wrong."""

    code = "INVALID_ARGUMENT"


@contextmanager
def configuring(subject: str = "") -> Iterator[None]:
    """Makes errors of the body ConfigurationErrors that begin with `subject`, but for unsupported ops."""
    prefix = f"{subject}: " if subject else ""
    try:
        yield
    except (UnimplementedError, ConfigurationError):
        raise
    except PartitaError as error:
        if _lacks_op(error):
            raise UnimplementedError(f"{prefix}{error.message}", node=error.node, op=error.op) from error
        raise ConfigurationError(f"{prefix}{error}") from error
    except OSError as error:
        raise ConfigurationError(f"{prefix}{error.strerror or error}; check the path {error.filename!r}") from error


def _lacks_op(error: PartitaError) -> bool:
    """Whether the registry does not know the op, or the placer found no device with a kernel for it.

    The placer has TensorFlow's code for that, which says no more than that something is invalid.
    """
    return (isinstance(error, NotFoundError) and error.op is not None) or error.message.startswith(_NO_KERNEL)


def exit_code(error: BaseException) -> int:
    """1 when the run failed, 2 for usage and configuration, 3 for an op without kernel."""
    if isinstance(error, ConfigurationError):
        return BAD_CONFIGURATION
    return UNSUPPORTED_OP if isinstance(error, UnimplementedError) else RUN_FAILED


def status(error: BaseException) -> str:
    """The status code of the error, as programs know it: "NOT_FOUND", "INVALID_ARGUMENT"."""
    if isinstance(error, ConfigurationError) and isinstance(error.__cause__, PartitaError):
        return error.__cause__.code
    return error.code if isinstance(error, PartitaError) else PartitaError.code


def one_line(error: BaseException) -> str:
    """What went wrong, on one line, whatever the message looks like."""
    text = str(error) if isinstance(error, PartitaError) else f"{type(error).__name__}: {error}"
    return " ".join(text.split())
