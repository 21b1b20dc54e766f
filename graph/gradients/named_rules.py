"""The rule of a node: that of its op, unless the node names another by TensorFlow's attr `_gradient_op_type`.

    sum = CollectiveReduceV2(x)                                      d x = the sum of all d sum
    sum = CollectiveReduceV2(x, _gradient_op_type="Partita>AsIs")    d x = d sum
    most = CollectiveReduceV2(x, _gradient_op_type="Partita>None")   none: a maximum that only keeps numbers small

A name is that of a rule in the table of gradient rules, an op's or one that no op has. Here are those of this package
that no op has; `@gradient("Mine")` adds others.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from ...errors import InvalidArgumentError, NotFoundError
from ..analysis.gradient_rules import Forward, GradientRule, Gradients, is_registered, lookup, takes_none
from ..analysis.sizes import static

if TYPE_CHECKING:
    from ..builder.handles import Tensor
    from ..ops.properties import NodeProperties

_ATTR = "_gradient_op_type"


class NodeRule(NamedTuple):
    """A rule, None of a flat op, and whether it takes None for an output without a gradient."""

    add: GradientRule | None
    takes_none: bool


def names_rule(kind: NodeProperties) -> bool:
    """Whether nodes of a kind name a rule that is known."""
    return _ATTR in kind.attrs and _is_known(_name(kind))


def rule_of(kind: NodeProperties, node: str) -> NodeRule:
    """The rule of a node; NotFoundError if it names one that nobody has registered, or its op has none."""
    op, name = kind.op_def.name, _name(kind)
    if name in _OF_NO_OP:
        return NodeRule(_OF_NO_OP[name], takes_none=False)
    if is_registered(name):
        return NodeRule(lookup(name), takes_none(name))
    if _ATTR in kind.attrs:
        raise NotFoundError(
            f"attr {_ATTR} names the gradient {name!r}, which is not known; register it by gradient({name!r}), or "
            "leave out the attr",
            node=node,
            op=op,
        )
    raise NotFoundError(f"no gradient is known for op {op!r}; stop gradients before it or add a rule", node=node)


def _is_known(name: str) -> bool:
    return name in _OF_NO_OP or is_registered(name)


def _name(kind: NodeProperties) -> str:
    named: bytes | None = kind.attrs.get(_ATTR)
    return kind.op_def.name if named is None else named.decode(errors="replace")


def _as_is(op: Forward, grad: Tensor, *_others: Tensor) -> Gradients:
    """d y of the first output for the first input, nothing for the others: members of a sum that all see one loss."""
    before, after = static(op.input_sizes(0)), static(op.output_sizes(0))
    fits = op.input_types[0] == op.output_types[0] and (before is None or after is None or before == after)
    if not fits:
        raise InvalidArgumentError(
            f"{op.name!r}: its gradient cannot pass as it is, since its first output differs from its first input in "
            f"type or shape; leave out attr {_ATTR}",
            node=op.name,
            op=op.op,
        )
    return (grad, *[None] * (len(op.input_types) - 1))


def _none(op: Forward, *_grads: Tensor) -> Gradients:
    """No input has a gradient."""
    return (None,) * len(op.input_types)


_OF_NO_OP: Mapping[str, GradientRule] = {"Partita>AsIs": _as_is, "Partita>None": _none}
