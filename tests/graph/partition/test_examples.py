"""The worked examples above the code print what they say."""

from __future__ import annotations

import doctest
from types import ModuleType

import numpy as np
import pytest

from partita.graph.builder import GraphBuilder
from partita.graph.partition import loops, pairs, split
from partita.graph.partition.printer import partitions_text
from partita.graph.structured import while_loop

NAMES = {"np": np, "GraphBuilder": GraphBuilder, "partitions_text": partitions_text, "while_loop": while_loop}
NAMES["split_graph"] = split.split_graph


@pytest.mark.parametrize("module", [loops, pairs, split])
def test_examples_print_what_they_say(module: ModuleType) -> None:
    """Each example of a module, with blanks at the ends of lines left out."""
    result = doctest.testmod(module, extraglobs=NAMES, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert result.attempted > 0
    assert result.failed == 0
