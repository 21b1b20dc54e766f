"""Records of ops, and their agreement with the registrations of kernels and gradients."""

from __future__ import annotations

import subprocess
import sys

import pytest

from partita.devices.kernels import in_place, registry as kernels
from partita.errors import AlreadyExistsError
from partita.graph.analysis import gradient_rules as gradients
from partita.graph.ops import record as records, registry
from partita.graph.ops.record import NodeClass, families, record_of
from partita.graph.ops.registration import register_op
from partita.graph.ops.registry import find_op, op_names
from partita.graph.protos import OpDef

LOADED = "import sys; print(sorted(m for m in sys.modules if m.startswith('partita.devices.kernels.')))"


def test_every_row_is_of_a_registered_op() -> None:
    """A row with a misspelt name would have no effect."""
    assert not [op for ops in families().values() for op in ops if find_op(op) is None]


def test_ops_that_wait_have_kernels() -> None:
    """Each op whose record says `waits` has a kernel, which its registration made a deferred one."""
    waiting = {op for ops in families().values() for op in ops if record_of(op).waits}
    assert len(waiting) > 50
    assert waiting <= kernels.registered_ops()


def test_an_op_that_computes_in_place_for_actors_does_so_for_the_clock() -> None:
    """Every op with a function that computes into an input has the fact; views and ops of other sizes do not."""
    assert all(record_of(op).in_place for op in in_place._FUNCTIONS)
    assert not [op for ops in families().values() for op in ops if record_of(op).in_place and record_of(op).is_view]


def test_a_flat_op_has_no_rule() -> None:
    """An op that is not differentiable has no gradient function."""
    assert not [op for op in gradients.table() if record_of(op).is_flat]


def test_an_op_without_a_row_has_a_default_record() -> None:
    """Such as the name of a function."""
    record = record_of("a_function_of_mine")
    assert (record.family, record.node_class, record.calls, record.waits) == ("", NodeClass.OTHER, None, False)


def test_ops_of_tensorflows_tests_are_flagged() -> None:
    """Ops such as A, B and Foo1, and the three that tests of TensorFlow's executor use."""
    flagged = {op for op in op_names() if record_of(op).is_test_only}
    assert {"A", "B", "Foo1", "Foo2", "Foo3", "Delay", "Error", "InvalidRefType"} <= flagged
    assert not flagged & {"Add", "NoOp", "Fact"}


def test_looking_up_an_op_loads_its_family_alone() -> None:
    """Looking up MatMul does not import the string kernels."""
    code = f"from partita.devices.kernels.registry import lookup; assert lookup('MatMul'); {LOADED}"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert "kernels.linalg.matmul" in loaded
    assert "kernels.strings" not in loaded


def test_facts_of_own_ops(monkeypatch: pytest.MonkeyPatch) -> None:
    """`register_op` stores them in the record."""
    monkeypatch.setattr(records, "_records", dict(records._records))
    monkeypatch.setattr(registry, "_signatures", dict(registry._signatures))
    signature = register_op(OpDef(name="MineTakesLong"), takes_long=True, waits_for_files=True)
    assert signature.record is record_of("MineTakesLong")
    assert signature.record.takes_long
    assert not signature.record.is_flat


def test_ours_comes_before_what_a_user_registers() -> None:
    """The family of an op is loaded before a user's kernel is registered, which is then refused."""
    code = "from partita.devices.kernels.registry import kernel; kernel('StringLower')(lambda node: None)"
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert f"{AlreadyExistsError.__name__}: op 'StringLower' has a kernel already" in done.stderr


def test_importing_sessions_reads_no_records() -> None:
    """The records of all families are read by the first op that is looked up: they cost as much as forty modules."""
    code = "import sys; from partita.actors import open_session; print('partita.graph.ops.nn.ops' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout.strip() == b"False"
