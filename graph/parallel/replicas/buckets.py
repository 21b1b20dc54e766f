"""Gradients are added over the replicas in buckets, in the order of the backward pass.

    d_b2, d_w2 --Reshape, ConcatV2--> values --CollectiveReduce--> --SplitV, Reshape--> the same two, of all replicas
    d_b1, d_w1 --...

A bucket begins its way while gradients of earlier layers are computed still; one collective of many bytes costs less
than many of few. Gradients of one type and device share a bucket, up to a number of bytes. Rows and indices of sparse
gradients are joined by CollectiveGather, rows divided by the number of replicas if gradients are averaged.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ....errors import UnimplementedError
from ...builder.handles import Tensor
from ...dtypes import DataType, Shape, base_type, dtype_name, item_size
from ...edge_ends import Output
from ...ops.registry import lookup_op
from .rewriting import Rewriting

_ONE = "all_reduce"


def reduce_gradients(r: Rewriting, gradients: Iterable[Output], bucket_bytes: int) -> None:
    """Makes the update region read gradients of all replicas.

    Raises UnimplementedError for a gradient of a type that cannot be added over devices.
    """
    dense = []
    for gradient in gradients:
        if gradient in r.step.joined:
            _join(r, gradient)
        else:
            check_type(r, gradient)
            dense.append(gradient)
    for bucket in buckets(r, dense, bucket_bytes):
        _reduce(r, bucket)


def check_type(r: Rewriting, gradient: Output) -> None:
    """UnimplementedError for a gradient of a type that has no mean over devices, or no sum."""
    dtype = base_type(r.type_of(gradient))
    allowed = lookup_op("CollectiveReduce").attrs["T"].allowed or ()
    if dtype not in allowed or (r.averages and dtype in (DataType.INT32, DataType.INT64)):
        name = r.graph.node_name(gradient[0])
        raise UnimplementedError(
            f"{name!r} is {dtype_name(dtype)} and depends on the batch where variables are updated: only floats can be "
            f"averaged over replicas; compute it before the gradients, or cast it",
            node=name,
        )


def buckets(r: Rewriting, gradients: Iterable[Output], bucket_bytes: int) -> list[list[Output]]:
    """The gradients of each bucket, in the order in which buckets are full; one of unknown size is alone."""
    open_buckets: dict[tuple[int, str], tuple[list[Output], int]] = {}
    full: list[list[Output]] = []
    for gradient in gradients:
        key = r.type_of(gradient), r.graph.requested_device(gradient[0])
        size = bytes_of(r.step.shapes.of(gradient), base_type(r.type_of(gradient)))
        members, held = open_buckets.pop(key, ([], 0))
        if members and (size is None or held + size > bucket_bytes):
            full.append(members)
            members, held = [], 0
        members = [*members, gradient]
        if size is None or held + size >= bucket_bytes:
            full.append(members)
        else:
            open_buckets[key] = members, held + size
    return [*full, *(members for members, _ in open_buckets.values())]


def bytes_of(shape: Shape, dtype: DataType) -> int | None:
    """The bytes of a tensor; None if its shape is not known."""
    if shape is None or None in shape:
        return None
    return int(np.prod([size for size in shape if size is not None], dtype=np.int64)) * item_size(dtype)


def _reduce(r: Rewriting, bucket: list[Output]) -> None:
    """One collective for a bucket."""
    with r.at(bucket[0], _ONE):
        if len(bucket) == 1:
            total = r.all_reduced(r.tensor(bucket[0]), "gradient")
            r.redirect(bucket[0], total, r.readers)
            return
        parts = [r.e.op("Reshape", r.tensor(gradient), [-1], name="part")[0] for gradient in bucket]
        total = r.all_reduced(r.e.op("ConcatV2", parts, 0, name="bucket")[0], "bucket_sum")
        split = r.e.op("SplitV", total, _lengths(r, bucket), 0, num_split=len(bucket), name="parts")
        for port, gradient in enumerate(bucket):
            whole = r.e.op("Reshape", split[port], _shape(r, gradient), name="gradient")[0]
            r.redirect(gradient, whole, r.readers)


def _lengths(r: Rewriting, bucket: list[Output]) -> Tensor:
    """How many elements each gradient of a bucket has."""
    sizes = [bytes_of(r.step.shapes.of(g), base_type(r.type_of(g))) for g in bucket]
    width = item_size(base_type(r.type_of(bucket[0])))
    return r.e.constant([(size or 0) // width for size in sizes], DataType.INT64, name="lengths")


def _shape(r: Rewriting, gradient: Output) -> Tensor:
    shape = r.step.shapes.of(gradient)
    assert shape is not None
    return r.e.constant(np.array(shape, np.int32), name="shape")


def _join(r: Rewriting, rows: Output) -> None:
    """The rows of all replicas, in the order of ranks."""
    dtype = base_type(r.type_of(rows))
    is_index = dtype in (DataType.INT32, DataType.INT64)
    with r.at(rows, "all_gather"):
        value = r.tensor(rows)
        if dtype is DataType.BFLOAT16:
            value = r.e.op("Bitcast", value, type=DataType.HALF)[0]
        group = r.group_attrs()
        where = [
            r.e.constant(group[key], DataType.INT32, name=key) for key in ("group_size", "group_key", "instance_key")
        ]
        joined = r.e.op("CollectiveGatherV2", value, *where, [], name="rows")[0]
        if dtype is DataType.BFLOAT16:
            joined = r.e.op("Bitcast", joined, type=dtype)[0]
        if r.averages and not is_index:
            joined = r.e.op("RealDiv", joined, float(r.size), name="mean")[0]
        r.redirect(rows, joined, r.readers)
