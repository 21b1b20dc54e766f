"""Counter rules of the ops that make lists or tell their length: the value of a list is its length."""

from __future__ import annotations

from ...analysis.counters import CounterRule, Number, counter_rule, plus


def _longer(by: int) -> CounterRule:
    return lambda inputs, _: plus(length, Number(by)) if isinstance(length := inputs(0), Number) else None


counter_rule("EmptyTensorList")(lambda _inputs, _: Number(0))
counter_rule("TensorListReserve")(lambda inputs, _: inputs(1))
counter_rule("TensorListPushBack")(_longer(1))
counter_rule("TensorListPopBack")(_longer(-1))
counter_rule("TensorListLength")(lambda inputs, _: inputs(0))
