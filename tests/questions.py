"""Questions to TensorFlow about whole requests, and what it answered: tables that tests compare with.

A question is a graph, a session's config and number of CPUs, and the steps to run in it. The module of a table writes
its questions, TensorFlow answers them in an environment of its own, and the table stays in a `data` folder:

    python -m tests.actors.running.answers.handle_cases questions.json
    TF -m tests.tensorflow_answers questions.json tests/actors/running/answers/data/handle_answers.json
"""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from partita.actors import open_session
from partita.errors import PartitaError
from partita.graph.protos import ConfigProto, GraphDef

Step = tuple[Sequence[str], Sequence[str]]
"""fetches and targets"""


@dataclass(frozen=True)
class Question:
    """What the last of the steps answers in a session of its own."""

    name: str
    graph_def: GraphDef
    steps: Sequence[Step]
    cpus: int = 1
    config: ConfigProto = field(default_factory=ConfigProto)

    def as_json(self) -> dict[str, object]:
        """The question for `tests.tensorflow_answers`."""
        graph_def, config = (
            base64.b64encode(message.SerializeToString(deterministic=True)).decode()
            for message in (self.graph_def, self.config)
        )
        return {"name": self.name, "graph": graph_def, "steps": self.steps, "cpus": self.cpus, "config": config}

    async def answer(self) -> object:
        """What this package answers: values, or the code of the error."""
        try:
            async with open_session(self.graph_def, f"cpu:{self.cpus}", config=self.config) as session:
                for fetches, targets in self.steps:
                    values = await session.run(list(fetches), targets=list(targets))
            return [np.asarray(value).tolist() for value in values]
        except PartitaError as error:
            return error.code


def write_questions(questions: Iterable[Question]) -> None:
    """Writes questions to the file that the command line names."""
    Path(sys.argv[1]).write_text("\n".join(json.dumps(question.as_json()) for question in questions))
