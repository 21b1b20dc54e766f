"""Value rules of constants, and of ops that pass their inputs on."""

from __future__ import annotations

from math import prod

from ....errors import InvalidArgumentError
from ...analysis.value_rules import MAX_ELEMENTS, InferredValues, ValueContext, value_rule


@value_rule("Const", "HostConst")
def const(c: ValueContext) -> InferredValues | None:
    """The value, unless it is large: then it is not decoded."""
    attrs = c.properties.attrs
    try:
        is_followed = c.dtype.kind in "iub" and prod(attrs.tensor_shape("value")) <= MAX_ELEMENTS
        return [attrs["value"]] if is_followed else None
    except InvalidArgumentError:
        return None  # damaged: the run reports it


@value_rule(
    "Identity",
    "IdentityN",
    "StopGradient",
    "PreventGradient",
    "Snapshot",
    "EnsureShape",
    "Enter",
    "Exit",
    "LoopCond",
    "RefIdentity",
    "RefEnter",
    "RefExit",
    "GuaranteeConst",
)
def unchanged(c: ValueContext) -> InferredValues:
    """Output i is input i."""
    return c.values


@value_rule("Switch", "RefSwitch")
def switch(c: ValueContext) -> InferredValues:
    """Both outputs are the first input."""
    return [c.values[0], c.values[0]]
