"""What a sweep writes into `_output_shapes` of a node, and how an import's answers are noted.

One word for each output:

    "?"     nothing is known of it: every shape is accepted
    "2"     shapes of rank 2 are accepted, of any size
    "2!"    only shapes of rank 2 are, and at least one size is known
    "none"  alone: the import refuses the node even without the attr
    "died"  alone: TensorFlow's process died

This module imports nothing of Partita, since TensorFlow's process needs it, too.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

FILE = Path(__file__).parent / "data" / "answers.json"
REFUSED, DIED, UNKNOWN = "none", "died", "?"
_RANKS = range(9)
_SIZE = 97  # which no output of the sweep has

Shape = tuple[int | None, ...] | None
Accepts = Callable[[Sequence[Shape] | None], bool]
"""whether an import accepts these shapes of all outputs, of which None is an unknown one; None: without the attr"""


def answer(num_outputs: int, accepts: Accepts) -> list[str]:
    """The words of a node, found out by contradicting one output after the other."""
    return [_word(num_outputs, output, accepts) for output in range(num_outputs)] if accepts(None) else [REFUSED]


def _word(num_outputs: int, output: int, accepts: Accepts) -> str:
    ranks = [rank for rank in _RANKS if accepts(_one(num_outputs, output, (None,) * rank))]
    if len(ranks) > 1:
        return UNKNOWN
    return f"{ranks[0]}" if accepts(_one(num_outputs, output, (_SIZE,) * ranks[0])) else f"{ranks[0]}!"


def agrees(words: Sequence[str], accepts: Accepts) -> bool:
    """Whether an import answers with these words, found out with the fewest questions."""
    if words == [REFUSED]:
        return not accepts(None)
    ranks = (0, 3) if UNKNOWN in words else (0,)
    contradicted = [output for output, word in enumerate(words) if word != UNKNOWN]
    return all(accepts([_largest(word, rank) for word in words]) for rank in ranks) and not any(
        accepts(_one(len(words), output, _contradiction(words[output]))) for output in contradicted
    )


def _largest(word: str, rank: int) -> Shape:
    """A shape with as many sizes as are accepted; of this rank where any is."""
    return (_SIZE,) * rank if word == UNKNOWN else (None if "!" in word else _SIZE,) * int(word[0])


def _contradiction(word: str) -> Shape:
    """A shape that is not accepted, although almost."""
    rank = int(word[0])
    return (_SIZE,) * rank if "!" in word else (None,) * (rank + 1)


def _one(num_outputs: int, output: int, shape: Shape) -> list[Shape]:
    return [shape if port == output else None for port in range(num_outputs)]


def write_answers(rows: Iterable[list[str]]) -> None:
    """Writes one line per graph: the op, and a word for each output."""
    FILE.write_text("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n")


def read_answers() -> list[list[str]]:
    """The rows of the file, in the order of the graphs."""
    rows: list[list[str]] = json.loads(FILE.read_text())
    return rows
