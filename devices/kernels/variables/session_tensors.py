"""Tensors that stay in the session between steps, so that the client need not fetch and feed them.

A tensor is kept, whether its handle was fetched or not, until it is deleted or its device restarts.
"""

from __future__ import annotations

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.dtypes import Array, dtype_name, numpy_dtype
from ...state import TENSOR_HANDLE, ResourceHandle, handle_array
from ..checks import require
from ..registry import Construction, Kernel, kernel


@kernel("GetSessionHandle")
def get_session_handle(node: Construction) -> Kernel:
    """Keeps a tensor and gives its handle, a string."""
    tensors, name, device = node.state.session_tensors, node.name, node.device

    def keep(value: Array) -> Array:
        text = np.empty((), object)
        text[()] = tensors.add(name, device, np.asarray(value)).encode()
        return text

    return keep


@kernel("GetSessionHandleV2")
def get_session_handle_v2(node: Construction) -> Kernel:
    """Keeps a tensor and gives its handle, which may be fed in place of the tensor."""
    tensors, name, device = node.state.session_tensors, node.name, node.device

    def keep(value: Array) -> Array:
        handle = tensors.add(name, device, np.asarray(value))
        return handle_array(ResourceHandle(device, TENSOR_HANDLE, handle, TENSOR_HANDLE))

    return keep


def _text(handle: Array) -> str:
    require(handle.ndim == 0, "handle must be scalar")
    text: bytes = handle.item()
    return text.decode(errors="replace")


@kernel("GetSessionTensor")
def get_session_tensor(node: Construction) -> Kernel:
    """The tensor of a handle."""
    tensors, dtype = node.state.session_tensors, node.output_types[0]

    def get(handle: Array) -> Array:
        value = tensors.get(_text(handle))
        if value.dtype != numpy_dtype(dtype):
            raise InvalidArgumentError(
                f"The tensor with handle '{_text(handle)}' is of type {value.dtype}, not {dtype_name(dtype)}"
            )
        return value

    return get


@kernel("DeleteSessionTensor")
def delete_session_tensor(node: Construction) -> Kernel:
    """Removes the tensor of a handle."""
    tensors = node.state.session_tensors
    return lambda handle: tensors.delete(_text(handle))
