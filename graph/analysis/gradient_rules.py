"""The table of gradient rules: op name -> the function that adds the nodes for the gradients of the op's inputs.

A rule gets one tensor per output, the gradient of that output, and returns one entry per data input: a tensor of the
input's shape and type, `IndexedSlices` for some rows of it, or None for no gradient. An op registered as flat has no
gradient anywhere.

To add one, write in the module of the op's family

    @gradient("Mul")
    def mul(op: Forward, grad: Tensor) -> Gradients:
        x, y = op.inputs
        return undo_broadcast(op, lambda: grad * y, lambda: grad * x)

A rule should read `op.inputs` and `op.outputs` only if it needs them: inside a loop each tensor that is read costs a
stack, which saves its value in every iteration. Sizes that are known before the run cost nothing: `op.input_sizes(i)`,
`op.output_sizes(i)`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from ..dtypes import Array, DataType
from ..ops.op_table import FAMILIES, OpTable
from ..ops.record import families, record_of

if TYPE_CHECKING:
    from ..builder.front_end import NodeMaker
    from ..builder.handles import Input, Tensor
    from .sizes import GivenSizes

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class IndexedSlices:
    """A gradient that is zero except for some rows: `values[i]` is added to row `indices[i]` of a tensor.

    `dense_shape` is the shape of that tensor, as an int32 or int64 tensor of rank 1. A row may occur several times.
    """

    values: Tensor
    indices: Tensor
    dense_shape: Tensor


Gradient: TypeAlias = "Tensor | IndexedSlices | None"
Gradients: TypeAlias = "Sequence[Gradient]"


class Forward:
    """The forward node for its gradient rule; `g` adds nodes beside it."""

    __slots__ = ("attrs", "g", "input_types", "name", "op", "output_types", "source")

    def __init__(
        self,
        g: NodeMaker,
        name: str,
        op: str,
        attrs: Mapping[str, Any],  # decoded attr values: their type depends on the attr
        input_types: Sequence[DataType],
        output_types: Sequence[DataType],
    ) -> None:
        self.g = g
        self.name = name
        self.op = op
        self.attrs = attrs
        self.input_types = input_types
        self.output_types = output_types
        self.source = ""
        """the name of one call of `gradients`: nodes of separate calls must not be shared"""

    @property
    def inputs(self) -> Sequence[Tensor]:
        """The tensors that the node read."""
        raise NotImplementedError

    @property
    def outputs(self) -> Sequence[Tensor]:
        """The tensors that the node computed."""
        raise NotImplementedError

    def make(self, op: str, *inputs: Input, **attrs: Any) -> Tensor:  # attr values have any type
        """Adds a node and returns its first output; arguments as in `NodeMaker.op`."""
        return self.g.op(op, *inputs, attrs=attrs)[0]

    def make_all(self, op: str, *inputs: Input, **attrs: Any) -> Sequence[Tensor]:  # attr values have any type
        """Adds a node and returns all of its outputs."""
        return tuple(self.g.op(op, *inputs, attrs=attrs))

    def once(self, _key: Hashable, make: Callable[[], T]) -> T:
        """The result of `make`, called once per key: rules of several nodes share what it adds."""
        return make()

    def next_number(self, _attr: str, _value: bytes) -> int:
        """One more than there are nodes whose attr has that value; those that rules have asked for before count too."""
        return 1

    def own_attrs(self, *names: str) -> dict[str, Any]:
        """Some attrs of the node, to be copied to another."""
        return {name: self.attrs[name] for name in names if name in self.attrs}

    def wants(self, _port: int) -> bool:
        """Whether the gradient of an input is used; if not, the rule may return None for it."""
        return True

    def input_sizes(self, _port: int) -> GivenSizes | None:
        """The sizes of an input as far as they are known; None if nothing is known."""
        return None

    def output_sizes(self, _port: int) -> GivenSizes | None:
        """The sizes of an output as far as they are known; None if nothing is known."""
        return None

    def constant_input(self, _port: int) -> Array | None:
        """The value of an input that is a Const, else None."""
        return None


GradientRule = Callable[..., Gradients]
"""takes a `Forward` and one Tensor per output"""

_RULES: OpTable[GradientRule] = OpTable("a gradient", FAMILIES, "_gradients", via=__name__)
_TAKES_NONE: set[str] = set()


def gradient(*ops: str, takes_none: bool = False) -> Callable[[GradientRule], GradientRule]:
    """Registers the decorated rule for each of `ops`; AlreadyExistsError for an op that has one.

    The rule gets zeros for an output without a gradient, or None with `takes_none`.
    """

    def register(rule: GradientRule) -> GradientRule:
        for op in ops:
            _RULES.add(op, rule)
        if takes_none:
            _TAKES_NONE.update(ops)
        return rule

    return register


def is_registered(op: str) -> bool:
    """Whether the op has a rule or is registered as flat."""
    return record_of(op).is_flat or op in _RULES


def lookup(op: str) -> GradientRule | None:
    """The rule of `op`; None when it is flat. Raises KeyError for ops that are not registered."""
    return None if record_of(op).is_flat else _RULES[op]


def takes_none(op: str) -> bool:
    """Whether the rule of `op` gets None instead of zeros for an output without a gradient."""
    return op in _RULES and op in _TAKES_NONE


def table() -> OpTable[GradientRule]:
    """All rules, by op."""
    return _RULES


def registered_ops() -> frozenset[str]:
    """All ops with a rule or registered as flat."""
    flat_ops = (op for ops in families().values() for op in ops if record_of(op).is_flat)
    return frozenset(_RULES).union(flat_ops)
