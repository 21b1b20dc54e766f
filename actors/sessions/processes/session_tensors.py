"""Tensors that a session keeps from step to step, by the process whose devices keep them.

GetSessionHandleV2 on CPU:1 (worker b)     "h;0;.../device:CPU:1"
GetSessionTensor on CPU:1                  the tensor
on CPU:0 (worker a), or fed                UnimplementedError: it stays in the worker of CPU:1
"""

from __future__ import annotations

from collections.abc import Callable

from ....devices.state import SessionTensors
from ....errors import UnimplementedError
from ....graph.dtypes import Array


class HostedTensors(SessionTensors):
    """The tensors that the devices of one process keep."""

    __slots__ = ("_is_here",)

    def __init__(self, is_here: Callable[[str], bool]) -> None:
        """`is_here` says whether a device is one of this process."""
        super().__init__()
        self._is_here = is_here

    def get(self, handle: str) -> Array:
        """As `SessionTensors.get`; UnimplementedError for a tensor that another process keeps."""
        device = handle.rpartition(";")[2]
        if device and not self._is_here(device):
            raise UnimplementedError(
                f"the tensor with handle {handle!r} stays in the worker process of {device}: read it there with "
                "GetSessionTensor, and fetch or send what that gives"
            )
        return super().get(handle)
