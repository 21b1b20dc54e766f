"""`partita ops`: everything that is attached to the name of an op; or the families of ops.

Signature, facts of the record, the modules of shape function, kernel, gradient and cost ("missing" where there is
none), and the device types with a kernel in TensorFlow.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from enum import Enum
from typing import Any

from ...actors.plans.roles import Role, role_of
from ...devices.kernels import op_cost, registry as kernels
from ...graph.analysis import gradient_rules as gradients, shape_functions as shapes
from ...graph.attrs import attr_value
from ...graph.ops.kernel_facts import host_arguments
from ...graph.ops.op_table import OpTable
from ...graph.ops.record import OpRecord, families, record_of
from ...graph.ops.registry import OpSignature, lookup_op, op_names
from ...graph.ops.summaries import arguments_text, summarize_attr
from ...graph.suggestions import suggestion
from .failure import ConfigurationError
from .screen import Screen

_MISSING = "missing"


@dataclass(frozen=True, slots=True)
class OpView:
    """The object that `ops NAME --json` prints.

    `attrs` are declarations by name, with defaults; `facts` are the fields of the record that differ from the default.
    Functions are named "module:function", None where there is none. `device_types` maps device types to the arguments
    that the kernel there needs in host memory.
    """

    name: str
    family: str
    inputs: str
    outputs: str
    attrs: dict[str, str]
    facts: dict[str, str | bool]
    shape_function: str | None
    kernel: str | None
    gradient: str | None
    cost: str
    device_types: dict[str, list[str]]


def ops(name: str | None, as_json: bool) -> None:
    """Describes one op, or prints how many ops each family has; ConfigurationError for an unknown name."""
    screen = Screen()
    if name is None:
        _print_families(screen, as_json)
        return
    if name not in (known := op_names()):
        raise ConfigurationError(f"there is no op {name!r}{suggestion(name, known)}")
    view = op_view(name)
    if as_json:
        screen.json(asdict(view))
    else:
        for line in _lines(view):
            screen.line(line)


def op_view(name: str) -> OpView:
    """The view of an op; NotFoundError if it is not registered."""
    signature, record = lookup_op(name), record_of(name)
    return OpView(
        name,
        record.family,
        arguments_text(signature.input_args),
        arguments_text(signature.output_args),
        {attr: _declaration(signature, attr) for attr in signature.attrs},
        _facts(signature, record),
        _source(shapes.table(), name),
        _kernel(name, record),
        "none: nothing flows back" if record.is_flat else _source(gradients.table(), name),
        _cost(name, record),
        {kind: sorted(arguments) for kind, arguments in host_arguments(name).items()},
    )


def _declaration(signature: OpSignature, attr: str) -> str:
    declared = signature.attrs[attr]
    default = "" if declared.default is None else f" = {summarize_attr(attr_value(declared.default))}"
    return f"{declared.type}{default}"


def _facts(signature: OpSignature, record: OpRecord) -> dict[str, str | bool]:
    plain = OpRecord(record.name, record.family)
    names = (field.name for field in fields(record))
    facts = {name: getattr(record, name) for name in names if getattr(record, name) != getattr(plain, name)}
    flags = ("is_stateful", "is_commutative", "is_aggregate", "is_collective", "takes_functions")
    facts |= {flag: True for flag in flags if getattr(signature, flag)}
    return {key: _text(value) if isinstance(value, Enum) else value for key, value in facts.items()}


def _text(value: Enum) -> str:
    return value.name.lower()


def _source(table: OpTable[Any], op: str) -> str | None:  # Any: entries are functions of any kind
    """The entry of a table for an op as "module:function"."""
    if op not in table:
        return None
    function = getattr(table[op], "__qualname__", type(table[op]).__name__)
    return f"{table.origin(op)}:{function.partition('.<locals>')[0]}"


def _kernel(op: str, record: OpRecord) -> str | None:
    if (role := role_of(op)) is not Role.COMPUTE:
        return f"none: the executor does it ({_text(role)})"
    if record.calls is not None:
        return f"none: the executor runs its functions ({record.calls.value})"
    return "none: has to be fed" if record.must_be_fed else _source(kernels.table(), op)


def _cost(op: str, record: OpRecord) -> str:
    if op_cost.is_free(op):
        return "free: shares the buffer of its input" if record.is_view else "free"
    counts = {what: _source(table, op) for what, table in op_cost.tables().items()}
    text = ", ".join(f"{what} {source}" for what, source in counts.items() if source is not None)
    if not text:
        return f"{'' if op_cost.is_stated(op) else 'guessed: '}an operation per output element"
    return f"{text}{' (matrix units)' if op_cost.is_matrix(op) else ''}"


def _lines(view: OpView) -> list[str]:
    lines = [f"{view.name}({view.inputs}) -> ({view.outputs})"]
    lines += [f"  attr {name}: {declared}" for name, declared in view.attrs.items()]
    lines.append(f"family    {view.family or 'none'}")
    lines.append(f"facts     {', '.join(map(_fact, view.facts, view.facts.values())) or 'none'}")
    sources = {"shapes": view.shape_function, "kernel": view.kernel, "gradient": view.gradient, "cost": view.cost}
    lines += [f"{what:<9} {source or _MISSING}" for what, source in sources.items()]
    return [*lines, f"placed on {_placed(view.device_types)}"]


def _fact(name: str, value: str | bool) -> str:
    return name if value is True else f"{name} {value}"


def _placed(device_types: Mapping[str, list[str]]) -> str:
    texts = [f"{kind} (host memory: {', '.join(args)})" if args else kind for kind, args in device_types.items()]
    return ", ".join(texts) or "no type of device"


def _print_families(screen: Screen, as_json: bool) -> None:
    counts = {family: len(names) for family, names in families().items()}
    counts["none"] = len(op_names()) - sum(counts.values())
    if as_json:
        screen.json({"families": counts})
        return
    screen.table(["family", "ops"], [[family, f"{count:,}"] for family, count in counts.items()])
