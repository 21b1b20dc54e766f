"""Which measured kernels ops are: sizes, bytes, and kinds of streams."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from partita.devices.kernels.kernel_run import (
    PRODUCTS,
    STREAMS,
    arrays_of,
    kernel_run_of,
    kernels_of_parts,
    runs_as,
    stream_kind,
)
from partita.devices.kernels.op_cost import CostContext, flops_of
from partita.errors import AlreadyExistsError
from partita.graph.dtypes import DataType, Dims


def use(
    op: str, inputs: Sequence[Dims], outputs: Sequence[Dims], dtype: DataType = DataType.FLOAT, **attrs: Any
) -> CostContext:
    """A use of an op on tensors of one type."""
    return CostContext(op, attrs, tuple(inputs), tuple(outputs), (dtype,) * len(inputs), (dtype,) * len(outputs))


def test_a_softmax_is_one_along_the_last_axis() -> None:
    """Of half of the bytes in a type of half the size."""
    run = kernel_run_of(use("Softmax", [(64, 128, 512)], [(64, 128, 512)]))
    assert run is not None
    assert (run.part, run.texts, run.sizes, run.times) == (
        STREAMS,
        {"op": "softmax"},
        {"rows": 8192, "columns": 512},
        1.0,
    )
    half = kernel_run_of(use("Softmax", [(64, 512)], [(64, 512)], DataType.HALF))
    assert half is not None
    assert half.sizes == {"rows": 64, "columns": 256}


def test_a_gradient_of_a_norm_moves_three_arrays() -> None:
    """Half as much again as the norm."""
    shape = (32, 1024)
    run = kernel_run_of(use("Partita>LayerNormGrad", [shape, (1024,), (32,), (32,), shape], [shape, (1024,), (1024,)]))
    assert run is not None
    assert (run.texts["op"], run.times) == ("layer_norm", 1.5)


def test_other_ops_and_empty_tensors_are_no_kernel() -> None:
    """Nor are scalars, which have no last axis."""
    assert kernel_run_of(use("MatMul", [(2, 3), (3, 4)], [(2, 4)])) is None
    assert kernel_run_of(use("Softmax", [(0, 4)], [(0, 4)])) is None
    assert kernel_run_of(use("Softmax", [()], [()])) is None


@pytest.mark.parametrize(
    ("op", "inputs", "kind"),
    [
        ("AddV2", [(8, 4), (8, 4)], "add"),
        ("AddV2", [(8, 4), ()], "add"),
        ("Mul", [(8, 4), ()], "mulu"),
        ("RealDiv", [(8, 4), (8, 4)], "div"),
        ("Pow", [(8, 4), ()], "powu"),
        ("Tanh", [(8, 4)], "tanh"),
        ("Relu", [(8, 4)], "relu"),
        ("Transpose", [(4, 8), (2,)], "relu"),
    ],
)
def test_kinds_of_streams(op: str, inputs: Sequence[Dims], kind: str) -> None:
    """By the op's kind, and by whether it reads one array or more."""
    said = stream_kind(use(op, inputs, [(8, 4)]))
    assert said == ("relu" if (op, len(inputs[-1])) == ("AddV2", 0) else kind)
    assert arrays_of(said) == (3 if said in ("add", "mul", "div", "pow") else 2)


def test_attention_in_parts_does_its_operations() -> None:
    """Without a mask the products of the parts are the operations of the whole; a mask spares nothing."""
    attrs: dict[str, Any] = {"window": 0, "query_offset": 0, "key_offset": 0, "sequence_first": False}
    for causal in (False, True):
        q = (2, 128, 4, 64)
        c = use("Partita>FlashAttention", [q, q, q], [q, (2, 4, 128)], causal=causal, **attrs)
        runs = kernels_of_parts(c)
        of_products = [run.sizes for run in runs if run.part == PRODUCTS]
        counted = sum(2 * s["batch"] * s["m"] * s["n"] * s["k"] for s in of_products)
        assert counted == 2 * 8 * 128 * 128 * (64 + 64)
        assert [run.texts["op"] for run in runs] == ["bmm", "mulu", *(["mulu"] if causal else []), "softmax", "bmm"]
        if not causal:
            assert counted == flops_of(c)


def test_two_declarations_are_an_error() -> None:
    """Naming the op."""
    with pytest.raises(AlreadyExistsError, match="'Softmax' has a measured kernel already"):
        runs_as("Softmax")(lambda c: None)
