"""`partita ops`: everything that is attached to the name of an op."""

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
facts     takes_long, is_product
shapes    partita.graph.ops.linalg.matmul_shapes:matmul
kernel    partita.devices.kernels.linalg.matmul:matmul
gradient  partita.graph.ops.linalg.matmul_gradients:matrix_product
cost      operations partita.devices.kernels.linalg.linalg_costs:matmul (matrix units)
"""


def test_an_op_with_everything(partita: CommandLine) -> None:
    """Signature, record, and the module of each function."""
    assert partita.done("ops", "MatMul").startswith(MATMUL)


def test_what_is_missing_is_said(partita: CommandLine) -> None:
    """An op of TensorFlow's tests has only a signature; everything else is "missing"."""
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
    document = json.loads(partita.done("ops", "QueueDequeueV2", "--json"))
    facts = {"state": "queue", "reads_handle": "item", "waits": True, "is_stateful": True, "holding": "takes_first"}
    assert document["facts"] == facts
    assert document["gradient"] is None
    assert document["attrs"] == {"component_types": "list(type)", "timeout_ms": "int = -1"}
    assert document["device_types"]["CPU"] == ["handle"]


def test_families_are_counted(partita: CommandLine) -> None:
    """All families, and the ops without one."""
    counts = json.loads(partita.done("ops", "--json"))["families"]
    assert {family: len(ops) for family, ops in families().items()} == {k: v for k, v in counts.items() if k != "none"}
    assert "linalg" in partita.done("ops")


def test_an_unknown_op_is_one_line(partita: CommandLine) -> None:
    """The error suggests the nearest op."""
    assert_one_clear_line(partita("ops", "Matmul"), 2, "'Matmul'", "did you mean 'MatMul'?")
