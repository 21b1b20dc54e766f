# mypy: ignore-errors
# It runs only where TensorFlow is, which has no types.
"""Asks TensorFlow the questions of a file (see `tests.questions`); run in an environment that has TensorFlow.

python -m tests.tensorflow_answers questions.json answers.json
"""

from __future__ import annotations

import base64
import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

os.environ |= {"TF_CPP_MIN_LOG_LEVEL": "3", "TF_ENABLE_ONEDNN_OPTS": "0", "CUDA_VISIBLE_DEVICES": ""}

import numpy as np
import tensorflow as tf

from tests.devices.kernels.sweep.forking import ask

MEMORY = 6 << 30
v1 = tf.compat.v1
CODES = {number: name for name, number in vars(tf.errors).items() if isinstance(number, int) and name.isupper()} | {
    13: "INTERNAL"
}


class Case:
    def __init__(self, question: dict) -> None:
        self.name = question["name"]
        self.steps = question["steps"]
        self.graph_def = v1.GraphDef.FromString(base64.b64decode(question["graph"]))
        self.config = v1.ConfigProto.FromString(base64.b64decode(question["config"]))
        self.config.device_count["CPU"] = question["cpus"]
        self.config.graph_options.rewrite_options.disable_meta_optimizer = True

    def answers(self, numbers: Sequence[int], report: Callable[[str], object]) -> None:
        for _ in numbers:
            report(json.dumps(self.answer()))

    def answer(self) -> object:
        try:
            with tf.Graph().as_default() as graph:
                tf.import_graph_def(self.graph_def, name="")
            with v1.Session(graph=graph, config=self.config) as session:
                for fetches, targets in self.steps:
                    nodes = [graph.get_operation_by_name(name) for name in targets]
                    values = session.run([list(fetches), nodes], options=v1.RunOptions(timeout_in_ms=4000))[0]
            return [np.asarray(value).tolist() for value in values]
        except tf.errors.OpError as error:
            return CODES[error.error_code]
        except ValueError:  # the client's import refuses a node
            return "INVALID_ARGUMENT"


def main() -> None:
    questions, result = map(Path, sys.argv[1:])
    cases = [Case(json.loads(line)) for line in questions.read_text().splitlines()]
    answers = ask([(case, 0) for case in cases], Case.answers, MEMORY)
    table = {case.name: json.loads(text) for case, text in zip(cases, answers, strict=True) if text[:1] in '["'}
    lines = [f" {json.dumps(name)}: {json.dumps(answer)}" for name, answer in table.items()]
    result.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    print(f"{len(table)} of {len(cases)} answered")


if __name__ == "__main__":
    main()
