"""Names of lowered nodes in a trace of TensorFlow."""

from __future__ import annotations

import pytest

from partita.devices.timing.tracing.lowered_names import conditional_of, is_switch_of, loop_of


@pytest.mark.parametrize(
    ("node", "conditional", "loop"),
    [
        ("f/c/switch_pred/_9", "f/c", None),
        ("c/branch_index/_2", "c", None),
        ("f/w/LoopCond/_12", None, "f/w"),
        ("switch_pred/_9", None, None),
        ("c/switch_pred", None, None),
        ("c/x/_5", None, None),
        ("w/LoopCond/_a", None, None),
    ],
)
def test_what_a_name_is_made_of(node: str, conditional: str | None, loop: str | None) -> None:
    """The node that was lowered, for its Switch on the predicate and for its condition; None for all others."""
    assert conditional_of(node) == conditional
    assert loop_of(node) == loop


def test_switches_of_a_loop() -> None:
    """Those that lowering has named after its inputs; not those of another loop whose name begins alike."""
    names = ["w/i_switch/_14", "w/body/_5/mul", "w2/i_switch/_14", "w/i_switch"]
    assert [name for name in names if is_switch_of(name, "w")] == ["w/i_switch/_14"]
