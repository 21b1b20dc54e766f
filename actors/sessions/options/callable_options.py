"""Requests as CallableOptions describe them: names, tensors connected to others, devices of feeds and fetches.

    feed: "a" feed: "b" fetch: "p"
    tensor_connection { from_tensor: "s" to_tensor: "d" }       whoever reads d reads s
    feed_devices { key: "a" value: "/job:localhost/replica:0/task:0/device:GPU:0" }

A feed on a device is there when the step starts: no transfer takes it to that device, and as in TensorFlow only names
spelled as in `feed` count. A device is one of the session, by its full name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ....errors import InvalidArgumentError, UnimplementedError
from ....graph import CallableOptions, RunOptions
from ....graph.device_name import find_full_name, parse_full_name
from ....graph.dtypes import DataType, base_type, dtype_name
from ....graph.ops.device_kinds import device_kind
from ....graph.passes.wiring import NO_WIRING, Wiring
from ....graph.tensor_id import parse_tensor_name
from ..requests import RequestNames

if TYPE_CHECKING:
    from ....devices.cluster import Cluster
    from ....graph.graph import Graph

# The types for which kernels of _Arg and _Retval in the memory of a GPU are registered in TensorFlow 2.21.
_IN_DEVICE_MEMORY = frozenset(
    {
        *(DataType.BFLOAT16, DataType.HALF, DataType.FLOAT, DataType.DOUBLE, DataType.COMPLEX64, DataType.COMPLEX128),
        *(DataType.INT8, DataType.INT16, DataType.INT64, DataType.UINT8, DataType.UINT16, DataType.BOOL),
    }
)


def callable_request(
    options: CallableOptions, cluster: Cluster, *, distributed: bool
) -> tuple[RequestNames, RunOptions | None]:
    """The request that the options describe, and the options of its steps, None where they say nothing.

    Raises InvalidArgumentError for a device that is malformed or does not exist, UnimplementedError for devices in a
    session over several tasks, and for fetch devices without `fetch_skip_sync`.
    """
    own = CallableOptions.FromString(options.SerializeToString())  # `options` may be TensorFlow's message
    if distributed and (own.feed_devices or own.fetch_devices):
        raise UnimplementedError(
            "CallableOptions::feed_devices and CallableOptions::fetch_devices to configure feeding/fetching tensors "
            "to/from device memory is not yet supported when using a remote session."
        )
    feed_devices = _full_names(own.feed, own.feed_devices, cluster)
    if own.fetch_devices and not own.fetch_skip_sync:
        raise UnimplementedError(
            "CallableOptions.fetch_skip_sync = false is not yet implemented. You can set it to true instead, but MUST "
            "ensure that Device::Sync() is invoked on the Device corresponding to the fetched tensor before "
            "dereferencing the Tensor's memory."
        )
    wiring = Wiring(
        tuple((connection.from_tensor, connection.to_tensor) for connection in own.tensor_connection),
        feed_devices,
        _full_names(own.fetch, own.fetch_devices, cluster),
    )
    names = tuple(own.feed), tuple(own.fetch), tuple(own.target)
    signature = RequestNames(*names, wiring=wiring if any(wiring) else None, is_callable=True)
    return signature, own.run_options if own.HasField("run_options") else None


def _full_names(names: Sequence[str], devices: Mapping[str, str], cluster: Cluster) -> tuple[str, ...]:
    """The full name of the device of each tensor, "" for those without; nothing if no tensor has one."""
    found = tuple(_full_name(name, devices[name], cluster) if name in devices else "" for name in names)
    return found if any(found) else ()


def _full_name(tensor: str, device: str, cluster: Cluster) -> str:
    parsed = find_full_name(device)
    if parsed is None:
        raise InvalidArgumentError(
            f"Invalid device name ('{device}') provided for the tensor '{tensor}' in CallableOptions"
        )
    full = str(parsed)
    if full not in cluster.names:
        raise InvalidArgumentError(
            f"Device '{device}' specified for tensor '{tensor}' in CallableOptions does not exist"
        )
    return full


def check_devices(graph: Graph, signature: RequestNames) -> None:
    """Raises UnimplementedError for a feed or fetch in the own memory of a device whose type cannot be there.

    The tensors must exist.
    """
    wiring = signature.wiring or NO_WIRING
    for names, devices in ((signature.feeds, wiring.feed_devices), (signature.fetches, wiring.fetch_devices)):
        for name, device in zip(names, devices, strict=bool(devices)):
            kind = parse_full_name(device).type or "" if device else ""
            tensor = parse_tensor_name(name)
            node = graph.find_node(tensor.node)
            assert node is not None  # from `check_names`
            dtype = base_type(node.output_types[tensor.index])
            if kind and device_kind(kind).own_memory and dtype not in _IN_DEVICE_MEMORY:
                raise UnimplementedError(
                    f"Cannot feed or fetch tensor '{tensor}' from device {device} as feeding/fetching from {kind} "
                    f"devices is not yet supported for {dtype_name(dtype)} tensors"
                )
