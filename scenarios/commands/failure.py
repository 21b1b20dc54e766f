"""Exit codes and one-line texts of errors.

A wrong flag, file or name that is found before the run is a `ConfigurationError`; an op that Partita does not have is
an `UnimplementedError`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ...errors import PartitaError, Reason, RequestError, UnimplementedError

RUN_FAILED = 1
BAD_CONFIGURATION = 2
UNSUPPORTED_OP = 3
DOES_NOT_FIT = 4  # the code of a step that was timed, not of an error


class ConfigurationError(RequestError):
    """A flag, a file, a feed or a name on the command line is wrong."""

    code = "INVALID_ARGUMENT"


def _no_hint(error: PartitaError) -> str:
    return ""


@contextmanager
def configuring(subject: str = "", hint: Callable[[PartitaError], str] = _no_hint) -> Iterator[None]:
    """Turns errors of the body into ConfigurationErrors, except for unsupported ops.

    They begin with `subject` and end with what `hint` says about the error.
    """
    prefix = f"{subject}: " if subject else ""
    try:
        yield
    except (UnimplementedError, ConfigurationError):
        raise
    except PartitaError as error:
        if error.reason in (Reason.NO_OP, Reason.NO_KERNEL):
            raise UnimplementedError(f"{prefix}{error.message}", node=error.node, op=error.op) from error
        raise ConfigurationError(f"{prefix}{error}{hint(error)}") from error
    except OSError as error:
        raise ConfigurationError(f"{prefix}{error.strerror or error}; check the path {error.filename!r}") from error


def exit_code(error: BaseException) -> int:
    """1 when the run failed, 2 for usage and configuration, 3 for an op without kernel."""
    if isinstance(error, ConfigurationError):
        return BAD_CONFIGURATION
    return UNSUPPORTED_OP if isinstance(error, UnimplementedError) else RUN_FAILED


def status(error: BaseException) -> str:
    """The status code of the error: "NOT_FOUND", "INVALID_ARGUMENT"."""
    if isinstance(error, ConfigurationError) and isinstance(error.__cause__, PartitaError):
        return error.__cause__.code
    return error.code if isinstance(error, PartitaError) else PartitaError.code


def one_line(error: BaseException) -> str:
    """The message of an error on one line."""
    text = str(error) if isinstance(error, PartitaError) else f"{type(error).__name__}: {error}"
    return " ".join(text.split())
