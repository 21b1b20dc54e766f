"""Gradients of collectives: what each member's value adds to the outputs of all.

    y of every member = sum of x              d x = sum of all d y                 a reduction
    y of every member = rows of all x         d x = its rows of the sum of d y     a reduce-scatter
    y = own rows of the sum of x              d x = rows of all d y                a gather
    y[j] = row i of member j                  d x[j] = row i of member j's d y     an all-to-all (unequal too)
    y = x of the member `shift` before        d x = d y of the one `shift` behind  a permutation
    y = x, which all members have copies of   d x = sum of all d y                 a reduction

They are collectives again, of the same group, mesh and axis. The n-th of an op, and of the gradients of its gradients,
takes the instance of the op plus n * 2^24: its attr `_instance` where it has one, else its instance key. All members
need one: take gradients of something that depends on each of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ....errors import UnimplementedError
from ...analysis.collective_seats import AXIS, GRADIENT_OF, IMBALANCE, INSTANCE, INSTANCE_STEP, MESH
from ...analysis.gradient_rules import Forward, Gradients, gradient
from ...attrs import encode
from ...dtypes import DataType

if TYPE_CHECKING:
    from ...builder.handles import Input, Tensor

_NUMBER = "_gradient_number"
_ASSUMED, _ASSUMED_SENT = "_assumed_shapes", "_assumed_sent_shapes"


def _marks(op: Forward) -> tuple[dict[str, Any], int]:
    """Attrs for the gradient of a collective, and what is added to the instance key of `op`: 0 if an attr has it."""
    root = op.attrs.get(GRADIENT_OF, op.name.encode())
    number = op.next_number(GRADIENT_OF, root)
    step = (number - op.attrs.get(_NUMBER, 0)) * INSTANCE_STEP
    marks = {GRADIENT_OF: root, _NUMBER: number, **op.own_attrs(MESH, AXIS)}
    if INSTANCE not in op.attrs:
        return marks, step
    return {**marks, INSTANCE: op.attrs[INSTANCE] + step}, 0


def _moved(op: Forward, key: int, step: int) -> Input:
    """The instance key of input `key` plus `step`."""
    if not step:
        return op.inputs[key]
    known = op.constant_input(key)
    return op.inputs[key] + op.g.constant(step, DataType.INT32) if known is None else int(known) + step


def _only_sums(op: Forward, merge: bytes) -> None:
    if merge.lower() not in (b"add", b"sum"):
        raise UnimplementedError(
            f"{op.name!r}: only sums have a gradient, not merge op {merge.decode(errors='replace')}", node=op.name
        )


def _by_inputs(op: Forward, made: str, grad: Tensor, **attrs: Any) -> Tensor:
    """A collective of version 2 in the group of `op`."""
    marks, step = _marks(op)
    kept = op.own_attrs("communication_hint", "timeout_seconds")
    return op.make(made, grad, *op.inputs[1:3], _moved(op, 3, step), [], **kept, **attrs, **marks)


def _nothing(op: Forward, first: Tensor) -> Gradients:
    """The gradient of the first input; the others say which group it is."""
    return (first, *[None] * (len(op.input_types) - 1))


@gradient("CollectiveReduceV2")
def reduce(op: Forward, grad: Tensor) -> Gradients:
    """The same reduction of d y."""
    _only_sums(op, op.attrs["merge_op"])
    return _nothing(op, _by_inputs(op, "CollectiveReduceV2", grad, **op.own_attrs("merge_op", "final_op")))


@gradient("CollectiveReduce")
def reduce_by_attrs(op: Forward, grad: Tensor) -> Gradients:
    """The same reduction of d y."""
    _only_sums(op, op.attrs["merge_op"])
    marks, step = _marks(op)
    kept = op.own_attrs(
        *("group_size", "group_key", "merge_op", "final_op", "subdiv_offsets"),
        *("wait_for", "communication_hint", "timeout_seconds"),
    )
    return (op.make("CollectiveReduce", grad, instance_key=op.attrs["instance_key"] + step, **kept, **marks),)


@gradient("CollectiveReduceV3")
def reduce_by_communicator(op: Forward, grad: Tensor) -> Gradients:
    """The same reduction of d y; its communicator numbers it."""
    _only_sums(op, op.attrs["reduction"])
    kept = op.own_attrs("reduction", "timeout_seconds")
    return op.make("CollectiveReduceV3", grad, *op.inputs[1:], **kept), None, None


@gradient("CollectiveGatherV2", "Partita>AllGather")
def gather(op: Forward, grad: Tensor) -> Gradients:
    """The member's rows of the sum of d y."""
    return _nothing(op, _by_inputs(op, "CollectiveReduceScatterV2", grad, merge_op=b"Add", final_op=b"Id"))


@gradient("CollectiveGather")
def gather_by_attrs(op: Forward, grad: Tensor) -> Gradients:
    """The member's rows of the sum of d y, by a reduce-scatter of version 2: there is none of version 1."""
    marks, step = _marks(op)
    seat = (op.attrs["group_size"], op.attrs["group_key"], op.attrs["instance_key"] + step)
    kept = op.own_attrs("communication_hint", "timeout_seconds")
    return (op.make("CollectiveReduceScatterV2", grad, *seat, [], merge_op=b"Add", final_op=b"Id", **kept, **marks),)


@gradient("CollectiveReduceScatterV2")
def reduce_scatter(op: Forward, grad: Tensor) -> Gradients:
    """The rows of all d y, divided as the sum was; CollectiveGatherV2 knows no bfloat16."""
    _only_sums(op, op.attrs["merge_op"])
    rows = _by_inputs(op, "Partita>AllGather" if grad.dtype is DataType.BFLOAT16 else "CollectiveGatherV2", grad)
    if op.attrs["final_op"] == b"Div":
        rows = op.make("RealDiv", rows, op.make("Cast", op.inputs[1], DstT=rows.dtype))
    return _nothing(op, rows)


@gradient("CollectiveAllToAllV2")
def all_to_all(op: Forward, grad: Tensor) -> Gradients:
    """The rows go back."""
    return _nothing(op, _by_inputs(op, "CollectiveAllToAllV2", grad))


@gradient("Partita>AllToAllV")
def all_to_all_of_unequal_parts(op: Forward, grad: Tensor, _counts: Tensor) -> Gradients:
    """The rows go back: as many to each member as came from it, and as many on the clock."""
    marks, step = _marks(op)
    marks |= _exchanged_assumptions(op)
    kept = op.own_attrs("communication_hint", "timeout_seconds", IMBALANCE)
    seat = (*op.inputs[2:4], _moved(op, 4, step), [])
    return _nothing(op, op.make("Partita>AllToAllV", grad, op.outputs[1], *seat, **kept, **marks))


def _exchanged_assumptions(op: Forward) -> dict[str, Any]:
    """On the clock a gradient has the shapes that were assumed of what `op` sent."""
    pairs = (_ASSUMED, _ASSUMED_SENT), (_ASSUMED_SENT, _ASSUMED)
    return {theirs: encode(op.attrs[own], "list(shape)") for own, theirs in pairs if own in op.attrs}


@gradient("Partita>CollectivePermute")
def permute(op: Forward, grad: Tensor) -> Gradients:
    """The other way round."""
    return _nothing(op, _by_inputs(op, "Partita>CollectivePermute", grad, shift=-op.attrs["shift"]))


@gradient("Partita>CopiedOver")
def copied(op: Forward, grad: Tensor) -> Gradients:
    """The sum over the group."""
    return _nothing(op, _by_inputs(op, "CollectiveReduceV2", grad, merge_op=b"Add", final_op=b"Id"))


@gradient("NcclAllReduce")
def nccl_all_reduce(op: Forward, grad: Tensor) -> Gradients:
    """The same reduction of d y, in a group whose name ends in "_grad"."""
    _only_sums(op, op.attrs["reduction"])
    marks, _ = _marks(op)
    name = op.attrs["shared_name"] + b"_grad" * (marks[_NUMBER] - op.attrs.get(_NUMBER, 0))
    return (op.make("NcclAllReduce", grad, shared_name=name, **op.own_attrs("reduction", "num_devices"), **marks),)


@gradient("NcclReduce")
def nccl_reduce(op: Forward, grad: Tensor) -> Gradients:
    """d y for each input."""
    _only_sums(op, op.attrs["reduction"])
    return (grad,) * len(op.input_types)


@gradient("NcclBroadcast")
def nccl_broadcast(_op: Forward, grad: Tensor) -> Gradients:
    """d x = d y."""
    return (grad,)
