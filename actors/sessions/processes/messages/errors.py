"""Errors on their way between processes: what programs may ask of an error arrives, its cause and traceback do not.

    AbortedError("...", device="/job:a/...")  ->  {"code": "ABORTED", "message": "...", "device": "/job:a/..."}

An error of a class without a code of its own arrives as one of the class that has the code.
"""

from __future__ import annotations

from typing import Any

from ..... import errors
from .....errors import PartitaError, Reason

_PLACE = ("node", "op", "device", "frame", "step", "function")
_CLASSES = {
    kind.code: kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, PartitaError) and "code" in vars(kind)
}


def error_to_document(error: PartitaError) -> dict[str, Any]:  # Any: JSON
    """The code, the message, the place and the notes of an error."""
    document: dict[str, Any] = {"code": error.code, "message": error.message}
    for name in _PLACE:
        value = getattr(error, name)
        if value is not None:
            document[name] = value
    if error.inputs is not None:
        document["inputs"] = list(error.inputs)
    if error.calls is not None:
        document["calls"] = list(error.calls)
    if error.reason is not None:
        document["reason"] = error.reason.name
    notes = getattr(error, "__notes__", None)
    if notes:
        document["notes"] = [str(note) for note in notes]
    return document


def error_from_document(document: dict[str, Any]) -> PartitaError:
    """The error of a document."""
    error = error_of_code(str(document.get("code")), str(document.get("message")))
    error.located(**{name: document[name] for name in _PLACE[:-1] if name in document})
    error.function = document.get("function")
    error.inputs = document.get("inputs")
    calls = document.get("calls")
    error.calls = None if calls is None else tuple(calls)
    if document.get("reason") in Reason.__members__:
        error.because(Reason[document["reason"]])
    for note in document.get("notes", ()):
        error.add_note(str(note))
    return error


def error_of_code(code: str, message: str) -> PartitaError:
    """An error of the class with this code."""
    return _CLASSES.get(code, errors.UnknownError)(message)
