"""Random numbers differ between replicas, and those of replica 0 are those of one device.

    RandomUniform(shape) {seed=1, seed2=2}             replica r: seed2 = 2 + r
    StatelessRandomUniform(shape, seed)                replica r: seed + [0, r]

Seeds of 0 and 0 stand for others in every run, so they stay. What draws from the state of a generator in a variable
would draw the same numbers on all replicas, as all variables start equal: it is refused.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import partial

import numpy as np

from ....errors import UnimplementedError
from ...attrs import encode
from ...dtypes import DataType, base_type, numpy_dtype
from ...ops.properties import NodeProperties
from ...ops.record import State
from ...protos import AttrValue
from ...tensor import numpy_to_tensor
from .rewriting import Rewriting

_STRIDE = 1_000_003  # a prime, so that the seeds of replicas and of nodes that count up do not meet


def seed_by_rank(r: Rewriting, nodes: Collection[int]) -> None:
    """Gives the random ops among some nodes seeds by rank."""
    for node in sorted(nodes):
        kind = r.step.flow.kinds[node]
        if kind is None or not _is_random(kind):
            continue
        whole, name = r.graph.node_properties(node), r.graph.node_name(node)
        arguments = [arg.name for arg in kind.op_def.input_args]
        if "seed" in arguments:
            _move_seed(r, node, arguments.index("seed"))
        elif "seed2" in kind.op_def.attrs:
            if whole.attrs["seed"] or whole.attrs["seed2"]:
                r.by_rank[name] = partial(_with_seed, whole)
        elif kind.op_def.record.state is State.RANDOM and arguments and arguments[0] == "resource":
            raise UnimplementedError(
                f"{name!r} draws from the state of a generator, which is the same on all replicas; draw by a stateless "
                "op with a seed, or by an op with the attrs `seed` and `seed2`",
                node=name,
                op=kind.op,
            )


def _is_random(kind: NodeProperties) -> bool:
    record = kind.op_def.record
    return record.state is State.RANDOM or record.family == "random" or "seed2" in kind.op_def.attrs


def _with_seed(kind: NodeProperties, rank: int) -> NodeProperties:
    if not rank:
        return kind
    return kind.with_attr("seed2", encode(int(kind.attrs["seed2"]) + rank * _STRIDE, "int"))


def _move_seed(r: Rewriting, node: int, port: int) -> None:
    """Adds the rank to the last number of a seed that is an input."""
    source = r.step.flow.sources[node][port]
    dtype = base_type(r.type_of(source))
    with r.at((node, 0)):
        shift = r.e.constant(np.zeros(2, numpy_dtype(dtype)), dtype, name=f"{r.graph.node_name(node)}/rank")
        own = r.properties(shift.node)
        moved = r.e.op("AddV2", r.tensor(source), shift, name=f"{r.graph.node_name(node)}/seed")[0]
    r.by_rank[shift.node] = lambda rank: own.with_attr("value", _shift(rank, dtype))
    r.redirect(source, moved, {node})


def _shift(rank: int, dtype: DataType) -> AttrValue:
    return encode(numpy_to_tensor(np.array([0, rank * _STRIDE], numpy_dtype(dtype)), dtype), "tensor")
