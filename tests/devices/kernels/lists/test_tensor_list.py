"""Lists of tensors: what goes in comes out, lists never change, misuse has TensorFlow's words."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.devices.kernels.lists.tensor_list import list_of
from partita.errors import InvalidArgumentError
from partita.graph.dtypes import Array
from tests.devices.kernels.harness import run
from tests.devices.kernels.lists.list_tensors import (
    FLOAT,
    INT32,
    PAIR,
    ROWS,
    UNKNOWN,
    VARIANT,
    empty,
    reserved,
    rows_list,
    stacked,
)


def tensors(value: Array) -> list[Any]:  # Any: numbers nested as deeply as the rank
    return [None if item is None else item.tolist() for item in list_of(value).items]


@given(st.lists(st.sampled_from(["push", "pop", "set", "branch"]), max_size=12))
def test_lists_never_change(steps: list[str]) -> None:
    """Every list keeps its elements whatever is made from it, like a Python list that is copied each time."""
    value, model = empty(np.zeros(0, np.int32)), list[float]()
    seen: list[tuple[Array, list[float]]] = []
    for number, step in enumerate(steps):
        seen.append((value, model))
        item = np.float32(number)
        if step == "push":
            value, model = run("TensorListPushBack", value, item), [*model, float(item)]
        elif step == "pop" and model:
            value, last = run("TensorListPopBack", value, UNKNOWN, element_dtype=FLOAT)
            assert last == model[-1]
            model = model[:-1]
        elif step == "set" and model:
            value, model = run("TensorListSetItem", value, np.int32(0), item), [float(item), *model[1:]]
        elif step == "branch":
            value, model = seen[len(seen) // 2]
    seen.append((value, model))
    for held, expected in seen:
        assert tensors(held) == expected
        assert run("TensorListLength", held) == len(expected)


def test_elements_never_set_are_zeros_of_the_known_shape() -> None:
    """The shape comes from the list, the op or the other elements."""
    np.testing.assert_array_equal(stacked(reserved(2)), np.zeros((2, 2)))
    partly_set = run("TensorListSetItem", reserved(2, UNKNOWN), np.int32(1), ROWS[1])
    np.testing.assert_array_equal(stacked(partly_set), [[0, 0], ROWS[1]])
    for value, shape in ((partly_set, UNKNOWN), (reserved(2), UNKNOWN), (reserved(2, UNKNOWN), PAIR)):
        item = run("TensorListGetItem", value, np.int32(0), shape, element_dtype=FLOAT)
        np.testing.assert_array_equal(item, [0, 0])
    with pytest.raises(InvalidArgumentError, match="not fully defined: <unknown> and no list element is set"):
        run("TensorListGetItem", reserved(2, UNKNOWN), np.int32(0), UNKNOWN, element_dtype=FLOAT)
    with pytest.raises(InvalidArgumentError, match="only contains uninitialized tensors"):
        stacked(reserved(2, UNKNOWN))
    joined = run("TensorListConcatV2", reserved(2, np.array([-1, 1])), UNKNOWN, np.array([1, 2]), element_dtype=FLOAT)
    assert joined[0].shape == (3, 1)


def test_misuse_of_an_element() -> None:
    """In TensorFlow's words."""
    cases: list[tuple[str, tuple[Any, ...], dict[str, Any], str]] = [  # Any: inputs and attrs of any op
        ("TensorListPushBack", (empty(), ROWS[0, :1]), {}, r"Op element shape: \[1\] list shape: \[2\]"),
        ("TensorListPushBack", (empty(), np.array([1, 2])), {}, "op elements int64 but list elements float"),
        ("TensorListPushBack", (empty(limit=0), ROWS[0]), {}, "full list list size: 0 max_num_elements: 0"),
        ("TensorListPopBack", (empty(), PAIR), {"element_dtype": FLOAT}, "pop from an empty list"),
        ("TensorListGetItem", (rows_list(), np.int32(3), PAIR), {"element_dtype": FLOAT}, "access element 3 in a list"),
        ("TensorListSetItem", (rows_list(), np.int32(-1), ROWS[0]), {}, "modify element -1 in a list with 3 elements"),
        ("TensorListResize", (rows_list(), np.int32(-5)), {}, "expects size to be non-negative. Got: -5"),
        ("TensorListStack", (rows_list(), PAIR), {"element_dtype": INT32}, "op elements int32 but list elements float"),
        (
            "TensorListGather",
            (rows_list(), np.array([3], np.int32), PAIR),
            {"element_dtype": FLOAT},
            "gather element 3",
        ),
        ("TensorListFromTensor", (ROWS, np.array([3])), {}, r"list with shape \[3\] from a tensor with shape \[2\]"),
        ("TensorListSplit", (ROWS, UNKNOWN, np.array([1, 1])), {}, "Length of tensor: 3 Values used: 2"),
        ("TensorListLength", (run("OptionalNone"),), {}, "Input handle is not a list"),
    ]
    for op, inputs, attrs, message in cases:
        with pytest.raises(InvalidArgumentError, match=message):
            run(op, *inputs, **attrs)


def test_lists_grow_and_shrink() -> None:
    """By resizing, by setting an element beyond the end where that is allowed, and by joining two."""
    assert run("TensorListLength", run("TensorListResize", rows_list(), np.int32(5))) == 5
    assert tensors(run("TensorListResize", rows_list(), np.int32(1))) == [ROWS[0].tolist()]
    grown = run("TensorListSetItem", empty(), np.int32(2), ROWS[0], resize_if_index_out_of_bounds=True)
    assert tensors(grown) == [None, None, ROWS[0].tolist()]
    both = run("TensorListConcatLists", rows_list(), rows_list(), element_dtype=FLOAT)
    np.testing.assert_array_equal(stacked(both), np.concatenate([ROWS, ROWS]))
    assert run("TensorListElementShape", reserved(1, np.array([-1, 3])), shape_type=INT32).tolist() == [-1, 3]


def test_several_lists_are_pushed_to_at_once() -> None:
    """Each list gets its row."""
    both = np.empty(2, object)
    both[:] = [empty()[()], empty()[()]]
    pushed = run("TensorListPushBackBatch", both, ROWS[:2])
    assert [item.items[0].tolist() for item in pushed] == ROWS[:2].tolist()


def test_variants_add_up() -> None:
    """Lists, lists of lists and optionals are added element by element; zeros are the neutral element."""
    nested = run("TensorListPushBack", empty(np.zeros(0, np.int32)), np.float32(1))
    inner = run("EmptyTensorList", np.zeros(0, np.int32), np.int32(-1), element_dtype=VARIANT)
    inner = run("TensorListPushBack", inner, nested, element_dtype=VARIANT)
    for value in (rows_list(), nested, inner, run("OptionalFromValue", [ROWS])):
        zeros = run("ZerosLike", value, T=VARIANT)
        total = run("AddN", [value, value, zeros], T=VARIANT)
        assert repr(run("AddN", [total, zeros], T=VARIANT)[()].zeros()) == repr(zeros[()])
    np.testing.assert_array_equal(stacked(run("AddN", [rows_list(), rows_list()], T=VARIANT)), ROWS * 2)
    for other in (reserved(2), reserved(3, np.array([1]))):
        with pytest.raises(InvalidArgumentError, match="Trying to add two lists"):
            run("AddN", [rows_list(), other], T=VARIANT)
