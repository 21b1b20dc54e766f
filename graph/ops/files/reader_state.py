"""What a reader has done, in the serialised form of ReaderSerializeState."""

from __future__ import annotations

from dataclasses import astuple, dataclass
from typing import Self

from google.protobuf.message import DecodeError

from ....errors import InvalidArgumentError
from ...protos import ReaderBaseState


@dataclass(slots=True)
class ReaderState:
    """Files started and finished, records given out, and the file that was started last."""

    work_started: int = 0
    work_finished: int = 0
    num_records_produced: int = 0
    current_work: bytes = b""

    @classmethod
    def parsed(cls, data: bytes, who: str) -> Self:
        """The state of a text; InvalidArgumentError, which names `who`, for a damaged or impossible one."""
        try:
            message = ReaderBaseState.FromString(data)
        except DecodeError:
            raise InvalidArgumentError(f"Could not parse state for {who}: {data.decode(errors='replace')}") from None
        state = cls(message.work_started, message.work_finished, message.num_records_produced, message.current_work)
        if min(state.work_started, state.work_finished, state.num_records_produced) < 0:
            raise InvalidArgumentError(f"Unexpected negative value when restoring in {who}: {state}")
        if state.work_started > state.work_finished + 1:
            raise InvalidArgumentError(f"Inconsistent work started vs. finished when restoring in {who}: {state}")
        return state

    def serialised(self) -> bytes:
        """The bytes that `parsed` takes."""
        started, finished, produced, current = astuple(self)
        return ReaderBaseState(
            work_started=started, work_finished=finished, num_records_produced=produced, current_work=current
        ).SerializeToString()
