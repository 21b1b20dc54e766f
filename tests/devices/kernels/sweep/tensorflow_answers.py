# mypy: ignore-errors
# It runs only where TensorFlow is, which has no types.
"""Asks TensorFlow what it says to every call and every changed input; run in an environment that has TensorFlow.

python -m tests.devices.kernels.sweep.tensorflow_answers calls.gz answers.json [--again Xla]

Answers that the file has already are kept, but for those of ops that are to be asked again.
"""

from __future__ import annotations

import argparse
import os
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

os.environ |= {"TF_CPP_MIN_LOG_LEVEL": "3", "TF_ENABLE_ONEDNN_OPTS": "0", "CUDA_VISIBLE_DEVICES": ""}

import tensorflow as tf

from tests.devices.kernels.sweep.cases import INPUT, TARGET, read_graphs
from tests.devices.kernels.sweep.forking import ask
from tests.devices.kernels.sweep.mutations import mutations
from tests.devices.kernels.sweep.verdicts import LETTERS, SAME, Verdict, read_verdicts, write_verdicts

MEMORY = 64 << 30  # of addresses: compilers reserve more than they use
LIMIT_MS, COMPILING_MS = 700, 5000
v1 = tf.compat.v1
CODES = {number: name for name, number in vars(tf.errors).items() if isinstance(number, int) and name.isupper()} | {
    13: "INTERNAL"
}


class Case:
    def __init__(self, data: bytes) -> None:
        self.graph = v1.GraphDef.FromString(data)
        self.inputs = {}
        self.dtypes = {}
        for node in self.graph.node:
            if node.name.startswith(INPUT) and node.op == "Const":
                value = tf.make_ndarray(node.attr["value"].tensor)
                self.dtypes[node.name] = value.dtype
                # Quantized numbers come as records of one number; they are changed as the number.
                self.inputs[node.name] = value.view(value.dtype[0]) if value.dtype.fields else value
                del node.attr["value"]
                node.op = "Placeholder"
                node.attr["shape"].shape.unknown_rank = True
        self.op = next(node.op for node in self.graph.node if node.name == TARGET)
        self.is_alone = len(self.graph.node) == 1 + len(self.inputs)
        self.questions = [{}] + [
            {name: changed} for name, value in self.inputs.items() for _, changed in mutations(value)
        ]
        self.session = None
        self.imported = None

    def answers(self, numbers: Sequence[int], report: Callable[[str], object]) -> None:
        for number in numbers:
            report(self.answer(number))

    def answer(self, number: int) -> str:
        try:
            if self.imported is None:
                self.imported = tf.Graph()
                with self.imported.as_default():
                    tf.import_graph_def(self.graph, name="")
            if self.session is None or not self.is_alone:
                config = v1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
                config.graph_options.rewrite_options.disable_meta_optimizer = True
                self.session = v1.Session(graph=self.imported, config=config)
            options = v1.RunOptions(timeout_in_ms=COMPILING_MS if self.op.startswith("Xla") else LIMIT_MS)
            feeds = {
                f"{name}:0": value.view(self.dtypes[name]) if self.dtypes[name].fields else value
                for name, value in (self.inputs | self.questions[number]).items()
            }
            self.session.run(self.imported.get_operation_by_name(TARGET), feeds, options=options)
        except tf.errors.OpError as error:
            return CODES[error.error_code]
        except Exception:  # noqa: BLE001 - the client's checks of feeds raise many kinds
            return "PYTHON"
        finally:
            if self.session is not None and not self.is_alone:
                self.session.close()
        return "OK"


def _kept(path: Path, again: str) -> dict[tuple[str, int], Verdict]:
    """The verdicts that a file has, by op and number of the call among those of the op; not those to ask again."""
    numbers = Counter()
    kept = {}
    for verdict in read_verdicts(path) if path.exists() else []:
        kept[verdict.op, numbers[verdict.op]] = verdict
        numbers[verdict.op] += 1
    return {key: verdict for key, verdict in kept.items() if not (again and key[0].startswith(again))}


def main() -> None:
    parser = argparse.ArgumentParser(prog="tensorflow_answers", description=__doc__)
    parser.add_argument("calls", type=Path)
    parser.add_argument("answers", type=Path)
    parser.add_argument("--unchanged", action="store_true", help="ask only for the calls as they are")
    parser.add_argument("--again", default="", help="ask again for ops that begin so")
    options = parser.parse_args()
    cases = [Case(data) for data in read_graphs(options.calls)]
    kept = _kept(options.answers, options.again)
    numbers = Counter()
    places = []
    for case in cases:
        places.append((case.op, numbers[case.op]))
        numbers[case.op] += 1
    counts = [1 if options.unchanged else len(case.questions) for case in cases]
    counts = [0 if place in kept else count for place, count in zip(places, counts, strict=True)]
    questions = [(case, number) for case, count in zip(cases, counts, strict=True) for number in range(count)]
    answers = iter(ask(questions, Case.answers, MEMORY))
    verdicts = []
    for case, place, count in zip(cases, places, counts, strict=True):
        letters = "".join(LETTERS[next(answers)] for _ in range(count))
        verdicts.append(kept.get(place) or Verdict(case.op, letters, SAME * count))
    write_verdicts(verdicts, options.answers)


if __name__ == "__main__":
    main()
