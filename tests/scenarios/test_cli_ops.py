"""`partita ops`: what is known of an op, joined from all tables."""

from __future__ import annotations

import json

from partita.graph.ops.record import families
from tests.scenarios.command_line import CommandLine, assert_one_clear_line

MATMUL = """\
MatMul(a:T, b:T) -> (product:T)
  attr transpose_a: bool = false
  attr transpose_b: bool = false
  attr T: type
  attr grad_a: bool = false
  attr grad_b: bool = false
family    linalg
facts     takes_long
shapes    partita.graph.ops.linalg.matmul_shapes:matmul
kernel    partita.devices.kernels.linalg.matmul:matmul
gradient  partita.graph.ops.linalg.matmul_gradients:matrix_product
cost      operations partita.devices.kernels.linalg.linalg_costs:matmul (matrix units)
"""


def test_an_op_with_everything(partita: CommandLine) -> None:
    """Signature, record, and where each function comes from."""
    assert partita.done("ops", "MatMul").startswith(MATMUL)


def test_what_is_missing_is_said(partita: CommandLine) -> None:
    """Of an op that only TensorFlow's tests have, nothing but the signature is known."""
    text = partita.done("ops", "Foo1")
    assert "facts     is_test_only\nshapes    missing\nkernel    missing\ngradient  missing\n" in text


def test_what_the_executor_does_itself_is_not_missing(partita: CommandLine) -> None:
    """Control flow, calls, and nodes that are fed have no kernel and need none."""
    assert "kernel    none: the executor does it (switch)" in partita.done("ops", "Switch")
    assert "kernel    none: the executor runs its functions (while)" in partita.done("ops", "While")
    assert "kernel    none: has to be fed" in partita.done("ops", "Placeholder")
    assert "gradient  none: nothing flows back" in partita.done("ops", "Shape")


def test_the_same_as_json(partita: CommandLine) -> None:
    """With null for what is missing."""
    found = json.loads(partita.done("ops", "QueueDequeueV2", "--json"))
    assert found["facts"] == {"state": "queue", "waits": True, "is_stateful": True}
    assert found["gradient"] is None
    assert found["attrs"] == {"component_types": "list(type)", "timeout_ms": "int = -1"}
    assert found["device_types"]["CPU"] == ["handle"]


def test_families_are_counted(partita: CommandLine) -> None:
    """All of them, and the ops that belong to none."""
    found = json.loads(partita.done("ops", "--json"))["families"]
    assert {family: len(ops) for family, ops in families().items()} == {k: v for k, v in found.items() if k != "none"}
    assert "linalg" in partita.done("ops")


def test_an_unknown_op_is_one_line(partita: CommandLine) -> None:
    """With the op that was meant."""
    assert_one_clear_line(partita("ops", "Matmul"), 2, "'Matmul'", "did you mean 'MatMul'?")
