"""Where ops of your own have kernels, and which of their arguments are in host memory there.

Placement and memory types ask here first; TensorFlow's ops are not here, since the facts about its kernels decide them.
Those that Partita adds to them are (`partita_ops`).
An op with no entry is taken to have a kernel everywhere and nothing but strings and handles on the host.

    add_own_kernel("Smooth", {"CPU"})
    add_own_kernel("Smooth", {"NPU"}, {"window"})
    own_kernels("Smooth")        {"CPU": frozenset(), "NPU": frozenset({"window"})}
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from ...errors import AlreadyExistsError, InvalidArgumentError
from .device_kinds import kind_names
from .partita_ops import HOST_ARGS
from .registry import find_op, is_built_in

EVERY_KIND = ""
"""stands in the place of a kind for all kinds of devices"""

_host_args: dict[str, dict[str, frozenset[str]]] = {op: {EVERY_KIND: args} for op, args in HOST_ARGS.items()}


def own_kernels(op: str) -> Mapping[str, frozenset[str]] | None:
    """The arguments in host memory, by kind of device with a kernel; None for an op without an entry."""
    return _host_args.get(op)


def host_args_of_own(op: str, device_type: str) -> frozenset[str] | None:
    """The arguments in host memory of the op's kernel on one type of device; None where `own_kernels` has none."""
    by_kind = _host_args.get(op, {})
    return by_kind.get(device_type, by_kind.get(EVERY_KIND))


def add_own_kernel(op: str, kinds: Collection[str] = (), host_args: Collection[str] = ()) -> None:
    """Notes a kernel of an op of your own for devices of these kinds, of every kind if there are none.

    Raises InvalidArgumentError for an op that is not registered or built in, for a kind not in upper case and for a
    name that is no argument of the op; AlreadyExistsError for a kind that has a kernel of the op.
    """
    _check(op, kinds, host_args)
    by_kind = _host_args.get(op, {})
    new = dict.fromkeys(kinds or (EVERY_KIND,), frozenset(host_args))
    taken = [kind for kind in new if kind in by_kind or EVERY_KIND in by_kind or (kind == EVERY_KIND and by_kind)]
    if taken:
        where = f"on devices of kind {taken[0]}" if taken[0] else "on some kind of device"
        raise AlreadyExistsError(f"op {op!r} has a kernel {where} already; remove one of the two", op=op)
    _host_args[op] = {**by_kind, **new}


def _check(op: str, kinds: Collection[str], host_args: Collection[str]) -> None:
    if is_built_in(op):
        raise InvalidArgumentError(
            f"op {op!r} is built in and placed as its kernels are; leave out kinds and host_args", op=op
        )
    signature = find_op(op)
    if signature is None:
        raise InvalidArgumentError(f"op {op!r} is not registered; call register_op before its kernel", op=op)
    for kind in kinds:
        if not kind or kind != kind.upper():
            raise InvalidArgumentError(
                f"kernel of {op!r}: {kind!r} is no kind of device; there are {', '.join(kind_names())}", op=op
            )
    names = {arg.name for arg in (*signature.input_args, *signature.output_args)}
    for name in host_args:
        if name not in names:
            raise InvalidArgumentError(
                f"kernel of {op!r}: {name!r} in host_args is no argument of the op; it has {', '.join(sorted(names))}",
                op=op,
            )
