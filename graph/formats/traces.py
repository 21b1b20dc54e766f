"""A trace in any form -> the message StepStats.

RunMetadata and StepStats begin with the same field number, so the bytes of one also parse as the other; a name of a
device begins with "/" only if the right one was taken.
"""

from __future__ import annotations

from pathlib import Path
from typing import TypeAlias

from google.protobuf.message import DecodeError

from ...errors import InvalidArgumentError, NotFoundError
from ..graphdef.sources import Serialisable
from ..protos import GraphDef, RunMetadata, StepStats

TraceSource: TypeAlias = "Serialisable | bytes | str | Path"


def step_stats_of(source: TraceSource) -> StepStats:
    """The StepStats of a trace: a RunMetadata or StepStats as a message, as bytes, or as the path of a binary file.

    Raises InvalidArgumentError for anything else and for a trace without records, NotFoundError for a file that cannot
    be read.
    """
    if isinstance(source, str | Path):
        data, what = _read(Path(source)), f"trace {str(source)!r}"
    elif isinstance(source, Serialisable):
        data, what = source.SerializeToString(), f"trace of type {type(source).__name__}"
    elif isinstance(source, bytes):
        data, what = source, "trace"
    else:
        raise InvalidArgumentError(f"trace: {type(source).__name__} is neither a message, bytes, nor a path")
    stats = _parsed(data)
    if stats is None:
        raise InvalidArgumentError(f"{what} is neither a StepStats nor a RunMetadata")
    if not any(device.node_stats for device in stats.dev_stats):
        raise InvalidArgumentError(f"{what} has no records; run the step with trace_level=FULL_TRACE")
    return stats


def partition_graphs_of(path: Path) -> list[GraphDef]:
    """The graphs in a RunMetadata, one a device; [] for one of a step without them and for a StepStats."""
    try:
        return list(RunMetadata.FromString(_read(path)).partition_graphs)
    except DecodeError:
        return []


def _parsed(data: bytes) -> StepStats | None:
    """None if the bytes are neither message."""
    for read in (StepStats.FromString, lambda data: RunMetadata.FromString(data).step_stats):
        try:
            stats = read(data)
        except DecodeError:
            continue
        if all(device.device.startswith("/") for device in stats.dev_stats):
            return stats
    return None


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise NotFoundError(f"trace {str(path)!r} cannot be read: {error.strerror}; check the path") from None
