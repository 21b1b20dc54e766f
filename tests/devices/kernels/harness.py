"""Runs one kernel, or one shape function, the way an executor would, without a graph.

They take an op name, its inputs (a list for an argument that repeats) and those attrs that the inputs do not decide.
`run` checks for all kernel tests that every returned value has exactly the element type that the op declares.

    run("Sum", x, np.array([0]), keep_dims=True)      shapes("Sum", (None, 3), np.array([0]), T=DataType.FLOAT)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from partita.devices.kernels.registry import BoundForm, Construction, Kernel, bound_forms, lookup as find_kernel
from partita.devices.state import DeviceState, ResourceHandle, Variable
from partita.graph.analysis.shape_functions import ShapeContext, lookup as find_shape_function
from partita.graph.attrs import decode
from partita.graph.dtypes import Array, DataType, Shape, base_type, from_numpy, is_ref, make_ref, numpy_dtype
from partita.graph.ops.registry import ArgDef, OpSignature, lookup_op
from tests.devices.kernels.layouts import check_layouts


def _type_of(value: Any) -> DataType:
    if isinstance(value, Variable):
        return make_ref(value.dtype)
    array = np.asarray(value)
    if array.dtype == object and array.size and isinstance(array.reshape(-1)[0], ResourceHandle):
        return DataType.RESOURCE
    return from_numpy(array)


def _infer(arg: ArgDef, value: Any, attrs: dict[str, Any]) -> None:
    """Sets the attrs that decide the type and number of `arg`, as `value` determines them."""
    items = list(value) if isinstance(value, (list, tuple)) else [value]
    if arg.number_attr:
        attrs.setdefault(arg.number_attr, len(items))
    if arg.type_attr and items:
        attrs.setdefault(arg.type_attr, base_type(_type_of(items[0])))
    if arg.type_list_attr:
        attrs.setdefault(arg.type_list_attr, tuple(base_type(_type_of(item)) for item in items))


def _types(args: Sequence[ArgDef], attrs: Mapping[str, Any]) -> tuple[DataType, ...]:
    types: list[DataType] = []
    for arg in args:
        if arg.type_list_attr:
            types += attrs[arg.type_list_attr]
            continue
        dtype = attrs[arg.type_attr] if arg.type_attr else arg.type
        types += [make_ref(dtype) if arg.is_ref else dtype] * (attrs[arg.number_attr] if arg.number_attr else 1)
    return tuple(types)


def _complete(signature: OpSignature, attrs: Mapping[str, Any]) -> dict[str, Any]:
    """`attrs` in decoded form: text as bytes, lists as tuples."""
    decoded: dict[str, Any] = {}
    for name, value in attrs.items():
        value = value.encode() if isinstance(value, str) else value
        decoded[name] = tuple(value) if isinstance(value, list) else value
    assert decoded.keys() <= signature.attrs.keys(), f"{signature.name} has no attrs {decoded.keys() - signature.attrs}"
    return decoded


def _with_defaults(signature: OpSignature, attrs: dict[str, Any]) -> dict[str, Any]:
    return {name: decode(default) for name, default in signature.defaults.items()} | attrs


def construct(
    op: str, *inputs: Any, state: DeviceState | None = None, name: str = "node", **attrs: Any
) -> Construction:
    """The `Construction` for the factory of `op` with these inputs; type attrs are read off the inputs."""
    signature = lookup_op(op)
    known = _complete(signature, attrs)
    for arg, value in zip(signature.input_args, inputs, strict=True):
        _infer(arg, value, known)
    known = _with_defaults(signature, known)
    return Construction(
        name=name,
        op=op,
        attrs=known,
        input_types=_types(signature.input_args, known),
        output_types=_types(signature.output_args, known),
        device="/job:localhost/replica:0/task:0/device:CPU:0",
        state=DeviceState(seed=0) if state is None else state,
    )


def flatten(inputs: Sequence[Any]) -> list[Any]:
    """The inputs as a kernel gets them: repeated arguments spread out."""
    flat: list[Any] = []
    for value in inputs:
        flat += value if isinstance(value, (list, tuple)) else [value]
    return flat


def run(op: str, *inputs: Any, state: DeviceState | None = None, name: str = "node", **attrs: Any) -> Any:
    """The outputs of `op` (None, one value or a tuple), each checked to have the declared element type.

    Inputs are arrays, numpy scalars or Variables, a list of them for an argument that repeats. Pass one `state` to
    several calls to let a stateful op remember.
    """
    node = construct(op, *inputs, state=state, name=name, **attrs)
    factory = find_kernel(op)
    assert factory is not None, f"no kernel is registered for {op}"
    result = _outcome(factory(node), flatten(inputs))
    for form in bound_forms(op):
        _check_bound(form, node, flatten(inputs), result)
    if state is None and _is_pure(node):
        check_layouts(node, lambda values: _outcome(factory(node), values), flatten(inputs))
    if isinstance(result, Exception):
        raise result
    results = (result,) if len(node.output_types) == 1 else () if result is None else result
    assert len(results) == len(node.output_types), f"{op} returned {len(results)} of {len(node.output_types)} outputs"
    for value, declared in zip(results, node.output_types, strict=True):
        _check_type(op, value, declared)
    return result


def _is_pure(node: Construction) -> bool:
    """Whether nothing but the values of its inputs decides what the node gives."""
    return not lookup_op(node.op).is_stateful and not any(map(is_ref, node.input_types))


def _outcome(kernel: Kernel, inputs: Sequence[Any]) -> Any:
    """What a kernel returns, or the error that it raises."""
    try:
        with np.errstate(all="ignore"):
            return kernel(*inputs)
    except Exception as error:  # noqa: BLE001 - compared, then raised by the caller
        return error


def _check_bound(form: BoundForm, node: Construction, inputs: Sequence[Any], result: Any) -> None:
    """The kernel for constant inputs gives what the ordinary one gives, bit for bit, or raises the same error."""
    ports = [port % len(inputs) for port in form.ports]
    try:
        kernel = form.factory(node, *[inputs[port] for port in ports])
    except Exception:  # noqa: BLE001 - then the ordinary kernel is used
        return
    others = [value for port, value in enumerate(inputs) if port not in ports]
    for _ in range(2):  # the second time with what it has kept
        same = _outcome(kernel, others)
        if isinstance(result, Exception):
            assert (type(same), str(same)) == (type(result), str(result)), f"{node.op}: {same!r} for {result!r}"
            continue
        assert not isinstance(same, Exception), f"{node.op}: {same!r} for {result!r}"
        for got, want in zip(*[x if isinstance(x, tuple) else (x,) for x in (same, result)], strict=True):
            assert (got.dtype, got.shape, type(got)) == (want.dtype, want.shape, type(want)), f"{node.op}: {got!r}"
            np.testing.assert_array_equal(got, want)


def _check_type(op: str, value: Any, declared: DataType) -> None:
    if is_ref(declared):
        assert isinstance(value, Variable), f"{op} returned {type(value)} where a reference is declared"
        return
    assert isinstance(value, (np.ndarray, np.generic)), f"{op} returned a {type(value)}, which is no tensor"
    assert value.dtype == numpy_dtype(declared), f"{op} returned {value.dtype} where {declared.name} is declared"


def shapes(op: str, *inputs: Any, **attrs: Any) -> list[Shape]:
    """The inferred output shapes of `op`.

    An input is a shape (a tuple, or None for unknown rank) or an array, whose value then counts as known; a list of
    these for an argument that repeats. Type attrs are read off arrays and are FLOAT where only shapes are given.
    """
    signature = lookup_op(op)
    known = _complete(signature, attrs)
    for arg, value in zip(signature.input_args, inputs, strict=True):
        items = value if isinstance(value, list) else [value]
        typical = [item if isinstance(item, (np.ndarray, np.generic)) else np.float32(0) for item in items]
        _infer(arg, typical, known)
    known = _with_defaults(signature, known)
    flat: list[Any] = []
    for value in inputs:
        flat += value if isinstance(value, list) else [value]
    arrays: dict[int, Array] = {
        i: np.asarray(item) for i, item in enumerate(flat) if isinstance(item, (np.ndarray, np.generic))
    }
    context = ShapeContext(
        op=op,
        attrs=known,
        inputs=tuple(arrays[i].shape if i in arrays else item for i, item in enumerate(flat)),
        input_types=_types(signature.input_args, known),
        output_types=_types(signature.output_args, known),
        constants=arrays,
    )
    function = find_shape_function(op)
    assert function is not None, f"no shape function is registered for {op}"
    return list(function(context))


def check_shapes(op: str, *inputs: Any, **attrs: Any) -> Any:
    """Runs `op`, checks that the inferred shapes are those of the results, and returns the results.

    Both with all input values known and with only their shapes known; the latter may know less but never differ.
    """
    result = run(op, *inputs, **attrs)
    node = construct(op, *inputs, **attrs)
    results = (result,) if len(node.output_types) == 1 else result
    type_attrs = {k: v for k, v in node.attrs.items() if k not in attrs}
    values = [[np.asarray(x) for x in g] if isinstance(g, (list, tuple)) else np.asarray(g) for g in inputs]
    bare = [[x.shape for x in g] if isinstance(g, list) else g.shape for g in values]
    for known in (values, bare):
        inferred = shapes(op, *known, **(type_attrs | attrs))
        assert len(inferred) == len(results)
        for shape, value in zip(inferred, results, strict=True):
            actual = np.shape(value)
            assert shape is None or len(shape) == len(actual), f"{op}: inferred {shape}, got {actual}"
            agrees = shape is None or all(s in (None, d) for s, d in zip(shape, actual, strict=True))
            assert agrees, f"{op}: inferred {shape}, got {actual}"
    return result
