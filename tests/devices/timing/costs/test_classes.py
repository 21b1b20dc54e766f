"""Classes of ops, by what their costs say."""

from __future__ import annotations

import pytest

from partita.devices.kernels import op_cost
from partita.devices.timing.costs.classes import op_class


def test_classes() -> None:
    """Of ops of every family, of transfers, and of names that no table has."""
    classes = {
        "BatchMatMulV2": "product",
        "Einsum": "product",
        "BlockLSTM": "product",
        "QuantizedMatMul": "product",
        "Conv2DBackpropInput": "convolution",
        "XlaConvV2": "convolution",
        "Cholesky": "factorisation",
        "Relu": "memory-bound",
        "NoSuchMatMul": "memory-bound",
        "copy": "copy",
    }
    assert {op: op_class(op) for op in classes} == classes


def test_an_op_from_outside_says_its_class(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its name decides nothing."""
    monkeypatch.setattr(op_cost, "_MATRIX", dict(op_cost._MATRIX))
    op_cost.flops("ConvolvedLater", matrix="attention")(lambda c: 1)
    assert op_class("ConvolvedLater") == "attention"
