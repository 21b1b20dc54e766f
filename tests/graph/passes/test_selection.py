"""Which passes the options of a session, and a text, stand for."""

from __future__ import annotations

from typing import Any

import pytest

from partita.errors import InvalidArgumentError
from partita.graph.passes.selection import Passes
from partita.graph.protos import GraphOptions, OptimizerOptions

L0 = OptimizerOptions.L0


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({}, "converters,fold,common"),
        ({"opt_level": L0}, ""),
        ({"opt_level": L0, "do_constant_folding": True}, "converters,fold"),
        ({"opt_level": L0, "do_common_subexpression_elimination": True}, "converters,common"),
        ({"opt_level": L0, "do_function_inlining": True}, "inline,converters,dead,identities"),
        ({"do_function_inlining": True}, "inline,converters,dead,identities,fold,common"),
    ],
)
def test_options_decide_what_is_done(options: dict[str, Any], names: str) -> None:  # Any: fields of the message
    """Level L1 is the default of given options; L0 leaves the single switches; inlining is followed by tidying up."""
    assert Passes.of(GraphOptions(optimizer_options=OptimizerOptions(**options))) == Passes.parse(names)


def test_without_options_nothing_is_done() -> None:
    assert Passes.of(GraphOptions()) == Passes.parse("") == Passes()


def test_the_largest_constant_is_an_option() -> None:
    options = OptimizerOptions(max_folded_constant_in_bytes=5)
    assert Passes.of(GraphOptions(optimizer_options=options)).max_constant_bytes == 5


def test_a_text_has_names_in_order() -> None:
    """Blanks do not matter; a name that is given twice is an error."""
    assert Passes.parse(" fold, inline ,").names == ("fold", "inline")
    with pytest.raises(InvalidArgumentError, match="pass 'fold' is given twice"):
        Passes.parse("fold,common,fold")
