"""What TensorFlow answered to every question of the sweep, and where Partita is known to answer otherwise.

The file has one line per call: the op, a letter per question for TensorFlow's code, and the same for ours where it
differs, with a dot where it does not. The known differences may only become fewer:

    ["Gather", ".....iii.oooo", "..........i.."]
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

FILE = Path(__file__).parent / "data" / "answers.json"
LETTERS = {
    "OK": "o",
    "CANCELLED": "c",
    "UNKNOWN": "u",
    "INVALID_ARGUMENT": "i",
    "DEADLINE_EXCEEDED": "w",
    "NOT_FOUND": "n",
    "ALREADY_EXISTS": "a",
    "PERMISSION_DENIED": "p",
    "UNAUTHENTICATED": "t",
    "RESOURCE_EXHAUSTED": "m",
    "FAILED_PRECONDITION": "f",
    "ABORTED": "b",
    "OUT_OF_RANGE": "r",
    "UNIMPLEMENTED": "l",
    "INTERNAL": "e",
    "UNAVAILABLE": "v",
    "DATA_LOSS": "d",
    "CRASH": "X",
    "ENDLESS": "Z",
    "PYTHON": "P",
}
"""w: it waits for another step, X: the process died, Z: it was killed after a while, P: the client refused"""
NAMES = {letter: name for name, letter in LETTERS.items()}
NEVER = "uXZP"
"""what no kernel of ours may answer"""
SAME = "."


@dataclass
class Verdict:
    """Letters of one call: TensorFlow's answers, and ours where they are known to differ."""

    op: str
    theirs: str
    known: str

    def is_right(self, number: int, ours: str) -> bool:
        """Whether our answer is TensorFlow's, or one where there is nothing to compare.

        That is so where TensorFlow died, took too long, or does not run even the unchanged call, and where one of the
        two has no memory for an output.
        """
        theirs = self.theirs[number]
        if ours in NEVER:
            return False
        return (
            ours == theirs
            or self.theirs[0] != LETTERS["OK"]
            or theirs in NEVER
            or LETTERS["RESOURCE_EXHAUSTED"] in (ours, theirs)
        )

    def is_known(self, number: int, ours: str) -> bool:
        """Whether this wrong answer is among the known ones."""
        return self.known[number] == ours


def read_verdicts(path: Path = FILE) -> list[Verdict]:
    """The verdicts of all calls, in the order of the file of calls."""
    return [Verdict(*line) for line in json.loads(path.read_text())]


def write_verdicts(verdicts: list[Verdict], path: Path = FILE) -> None:
    """Writes one line per call."""
    lines = [json.dumps([v.op, v.theirs, v.known]) for v in verdicts]
    path.write_text("[\n" + ",\n".join(lines) + "\n]\n")
