"""Classes of ops, by family and name."""

from __future__ import annotations

from partita.devices.timing.costs.classes import op_class


def test_classes() -> None:
    """Of ops of every family, and of names that no table has."""
    assert {op: op_class(op) for op in ("BatchMatMulV2", "Einsum", "Conv2DBackpropInput", "Cholesky", "Relu")} == {
        "BatchMatMulV2": "product",
        "Einsum": "product",
        "Conv2DBackpropInput": "convolution",
        "Cholesky": "factorisation",
        "Relu": "memory-bound",
    }
    assert (op_class("FlashAttention"), op_class("GroupedMatMul"), op_class("copy")) == (
        "attention",
        "grouped product",
        "copy",
    )
