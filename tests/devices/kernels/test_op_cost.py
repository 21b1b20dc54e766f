"""Operation and byte counts: closed forms for the ops that matter, and rules that hold for all."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import pytest
from hypothesis import given, strategies as st

from partita.devices.kernels import op_cost
from partita.devices.kernels.op_cost import CostContext, bytes_of, flops, flops_of, free, is_free, is_matrix
from partita.errors import AlreadyExistsError
from partita.graph.dtypes import DataType, Dims
from partita.graph.ops.registry import lookup_op

FLOAT, INT32 = DataType.FLOAT, DataType.INT32
size = st.integers(1, 64)


def use(
    op: str, inputs: Sequence[Dims], outputs: Sequence[Dims], types: str | None = None, **attrs: Any
) -> CostContext:
    """A use of an op; `types` has a letter per input: f, i, or r for a resource."""
    letters = {"f": FLOAT, "i": INT32, "r": DataType.RESOURCE}
    input_types = tuple(letters[letter] for letter in types or "f" * len(inputs))
    return CostContext(op, attrs, tuple(inputs), tuple(outputs), input_types, (FLOAT,) * len(outputs))


@given(size, size, size, st.booleans(), st.booleans())
def test_matmul(m: int, k: int, n: int, transpose_a: bool, transpose_b: bool) -> None:
    """2*m*k*n however the factors are stored; bytes are both factors and the product."""
    a, b = (k, m) if transpose_a else (m, k), (n, k) if transpose_b else (k, n)
    c = use("MatMul", [a, b], [(m, n)], transpose_a=transpose_a, transpose_b=transpose_b)
    assert flops_of(c) == 2 * m * k * n
    assert bytes_of(c) == 4 * (m * k + k * n + m * n)


@given(size, size, size, st.integers(1, 8), st.booleans())
def test_batch_matmul_is_a_matmul_per_matrix(m: int, k: int, n: int, batch: int, adj_x: bool) -> None:
    """Also where one operand is broadcast."""
    x = (batch, k, m) if adj_x else (batch, m, k)
    c = use("BatchMatMulV2", [x, (1, k, n)], [(batch, m, n)], adj_x=adj_x)
    assert flops_of(c) == batch * 2 * m * k * n


@given(size, size, size, st.integers(1, 8))
def test_einsum_agrees_with_matmul(m: int, k: int, n: int, batch: int) -> None:
    """A product written as an equation costs what the product costs, with labels or an ellipsis for the batch."""
    for equation in (b"bmk,bkn->bmn", b"...mk,...kn->...mn"):
        c = use("Einsum", [(batch, m, k), (batch, k, n)], [(batch, m, n)], equation=equation)
        assert flops_of(c) == batch * 2 * m * k * n


@given(st.integers(1, 4), size, size, st.integers(1, 5), st.integers(1, 5), size, size)
def test_convolution_and_its_gradients_do_the_same_products(
    n: int, h: int, w: int, kh: int, kw: int, channels: int, out: int
) -> None:
    """2 * outputs * filter points * channels, forward and back."""
    image, kernel, result = (n, h, w, channels), (kh, kw, channels, out), (n, h, w, out)
    expected = 2 * prod(result) * kh * kw * channels
    assert flops_of(use("Conv2D", [image, kernel], [result])) == expected
    assert flops_of(use("Conv2DBackpropInput", [(4,), kernel, result], [image], "iff")) == expected
    assert flops_of(use("Conv2DBackpropFilter", [image, (4,), result], [kernel], "fif")) == expected


def test_depthwise_sees_one_channel_per_output() -> None:
    """Not all of them."""
    c = use("DepthwiseConv2dNative", [(1, 8, 8, 16), (3, 3, 16, 2)], [(1, 8, 8, 32)])
    assert flops_of(c) == 2 * 9 * 8 * 8 * 32


def test_max_pool_agrees_with_published_answers() -> None:
    """TensorFlow's cost model: 308,000 ns at 41.6 operations per ns for a [32,56,56,64] image, window 3, stride 2."""
    c = use("MaxPool", [(32, 56, 56, 64)], [(32, 28, 28, 64)], ksize=(1, 3, 3, 1))
    assert abs(flops_of(c) / 41.6 / 308_000 - 1) < 0.01


@pytest.mark.parametrize(("op", "ns"), [("Tanh", 1_814_000), ("Sigmoid", 2_016_000), ("Relu", 50_000)])
def test_elementwise_agrees_with_published_answers(op: str, ns: int) -> None:
    """TensorFlow's cost model for [2048,1024] at 41.6 operations per ns."""
    assert abs(flops_of(use(op, [(2048, 1024)], [(2048, 1024)])) / 41.6 / ns - 1) < 0.01


def test_reductions_read_and_movers_only_move() -> None:
    """A sum costs its input; a transpose nothing but bytes; a gather only what it picks."""
    assert flops_of(use("Sum", [(8, 16), (1,)], [(8,)], "fi")) == 128
    assert flops_of(use("Transpose", [(8, 16), (2,)], [(16, 8)], "fi")) == 0
    assert bytes_of(use("GatherV2", [(10**6, 4), (3,), ()], [(3, 4)], "fii")) == 2 * 4 * 12 + 4 * 3


def test_updates_are_bound_by_memory() -> None:
    """Adam touches variable, two slots and gradient: four reads, three writes, also through resource handles."""
    by_handle = use("ResourceApplyAdam", [(), (), (), *[()] * 6, (1000,)], [], "rrr" + "f" * 7)
    by_reference = use("ApplyAdam", [(1000,)] * 3 + [()] * 6 + [(1000,)], [(1000,)])
    assert bytes_of(by_handle) == bytes_of(by_reference) == 7 * 4 * 1000
    assert flops_of(by_handle) == flops_of(by_reference)


@given(st.lists(st.lists(st.integers(0, 9), max_size=3).map(tuple), max_size=3), st.data())
def test_an_unregistered_op_costs_an_operation_per_output_element(shapes: list[Dims], data: st.DataObject) -> None:
    """And reads inputs and writes outputs once."""
    cut = data.draw(st.integers(0, len(shapes)))
    c = use("NobodyRegisteredThis", shapes[:cut], shapes[cut:])
    assert flops_of(c) == sum(map(prod, shapes[cut:]))
    assert bytes_of(c) == 4 * sum(map(prod, shapes))


def test_free_ops_cost_nothing() -> None:
    """Neither operations nor bytes."""
    c = use("Reshape", [(8, 16), (1,)], [(128,)], "fi")
    assert (flops_of(c), bytes_of(c)) == (0, 0)


def test_every_registered_op_exists() -> None:
    """In the op registry, so that no cost is registered under a name that no graph can have."""
    names = {*op_cost._FLOPS, *op_cost._BYTES, *op_cost._FREE, *op_cost._MATRIX}
    assert all(lookup_op(name).name == name for name in names)


def test_free_and_counted_exclude_each_other() -> None:
    """An op is one or the other."""
    assert not [op for op in (*op_cost._FLOPS, *op_cost._BYTES) if is_free(op)]
    assert is_matrix("Conv2D")
    assert not is_matrix("Softmax")


def test_two_registrations_are_an_error() -> None:
    """Naming the op."""
    with pytest.raises(AlreadyExistsError, match="'MatMul' has a count of operations already"):
        flops("MatMul")(lambda c: 0)
    with pytest.raises(AlreadyExistsError, match="'NoOp' has no cost already"):
        free("NoOp")
