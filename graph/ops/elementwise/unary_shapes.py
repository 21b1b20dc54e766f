"""Shapes of elementwise ops on one tensor, and of their gradients: that of the (first) input.

Flows in: one shape, or the forward output's shape and the incoming gradient's. Flows out: the first of them.
"""

from __future__ import annotations

from ...analysis.shape_functions import broadcast_binary, shape_fn, unchanged

shape_fn(
    *("Abs", "Neg", "Sign", "Square", "Sqrt", "Rsqrt", "Exp", "Expm1", "Log", "Log1p", "Inv", "Reciprocal"),
    *("Sin", "Cos", "Tan", "Asin", "Acos", "Atan", "Sinh", "Cosh", "Tanh", "Asinh", "Acosh", "Atanh", "Sigmoid"),
    *("SqrtGrad", "RsqrtGrad", "SigmoidGrad", "TanhGrad", "InvGrad", "ReciprocalGrad"),
    *("Floor", "Ceil", "Rint", "Round", "Invert", "LogicalNot", "PopulationCount", "ZerosLike", "OnesLike"),
    *("IsNan", "IsInf", "IsFinite", "Conj", "Real", "Imag", "Angle", "ComplexAbs"),
)(unchanged)

shape_fn("Complex")(broadcast_binary)
