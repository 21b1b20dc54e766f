"""A call frame takes arguments at once and results one by one, with TensorFlow's messages."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.errors import InternalError, InvalidArgumentError, PartitaError
from partita.graph import AttrValue, DataType, FunctionCallFrame, NameAttrList
from partita.graph.dtypes import numpy_dtype
from partita.graph.functions.canonical import canonical_name

X, N = np.ones(2, np.float32), np.ones(2, np.int32)
TYPES = st.sampled_from([DataType.FLOAT, DataType.INT32, DataType.STRING, DataType.BOOL, DataType.BFLOAT16])


def frame() -> FunctionCallFrame:
    """Two arguments, float and int32, and one result of type float."""
    return FunctionCallFrame([DataType.FLOAT, DataType.INT32], [DataType.FLOAT])


@given(st.lists(TYPES, max_size=4), st.lists(TYPES, max_size=4), st.data())
def test_a_call_hands_over_what_it_was_given(
    arguments: list[DataType], results: list[DataType], data: st.DataObject
) -> None:
    """Results in any order; consumed ones are gone."""
    call = FunctionCallFrame(arguments, results)
    given_values, returned = ([np.zeros(2, numpy_dtype(dtype)) for dtype in types] for types in (arguments, results))
    call.set_args(given_values)
    assert (call.num_args, call.num_retvals) == (len(arguments), len(results))
    assert all(call.get_arg(index) is value for index, value in enumerate(given_values))
    for index in data.draw(st.permutations(range(len(results)))):
        call.set_retval(index, returned[index])
    for values in (call.get_retvals(), call.consume_retvals()):
        assert all(value is expected for value, expected in zip(values, returned, strict=True))
    assert call.consume_retvals(allow_dead_tensors=True) == [None] * len(results)


@pytest.mark.parametrize(
    ("use", "kind", "text"),
    [
        (lambda f: f.set_args([X]), InvalidArgumentError, "Expects 2 arguments, but 1 is provided"),
        (lambda f: f.set_args([X, X]), InvalidArgumentError, "Expects arg[1] to be int32 but float is provided"),
        (lambda f: f.get_arg(0), InvalidArgumentError, "GetArg 0 is not within [0, 0)"),
        (lambda f: (f.set_args([X, N]), f.get_arg(2)), InvalidArgumentError, "GetArg 2 is not within [0, 2)"),
        (lambda f: (f.set_args([X, N]), f.get_arg(-1)), InvalidArgumentError, "GetArg -1 is not within [0, 2)"),
        (lambda f: f.set_retval(1, X), InvalidArgumentError, "SetRetval 1 is not within [0, 1)"),
        (lambda f: f.set_retval(0, N), InvalidArgumentError, "Expects ret[0] to be float, but int32 is provided."),
        (lambda f: (f.set_retval(0, X), f.set_retval(0, X)), InternalError, "Retval[0] has already been set."),
        (lambda f: f.get_retvals(), InternalError, "Retval[0] does not have value"),
        (lambda f: f.consume_retvals(), InternalError, "Retval[0] does not have value"),
    ],
)
def test_misuse_has_the_messages_of_tensorflow(
    use: Callable[[FunctionCallFrame], object], kind: type[PartitaError], text: str
) -> None:
    with pytest.raises(kind, match=f"^{re.escape(text)}$"):
        use(frame())


def test_the_name_of_an_instantiation_does_not_depend_on_the_order_of_attrs() -> None:
    flag = AttrValue(b=False)
    attrs = {"transpose_b": flag, "T": AttrValue(type="DT_FLOAT"), "transpose_a": flag}
    name = "MatMul[T=float,transpose_a=false,transpose_b=false]"
    assert canonical_name("MatMul", attrs) == name
    assert canonical_name("MatMul", dict(reversed(attrs.items()))) == name
    nested = {
        "f": AttrValue(func=NameAttrList(name="g", attr={"k": AttrValue(i=3)})),
        "Tin": AttrValue(list=AttrValue.ListValue(type=["DT_FLOAT", "DT_INT32"])),
    }
    assert canonical_name("h", nested, ["_target=d"]) == "h[Tin={float, int32},_target=d,f=g[k=3]]"
