"""Sweeps kernels: runs every recorded call with each of its inputs changed, and compares the codes with TensorFlow's.

    python -m tests.devices.kernels.sweep [OP or FAMILY ...] [--memory] [--shrink]

Prints what differs and is not known, what takes over a second of CPU, and the counts. The exit code is 1 if there is
any. `--memory` prints, instead of times, what takes over 100 MB beside the largest output that it may have: every
allocation is traced, which takes three times as long. `--shrink` removes the known differences that are gone from
data/answers.json; `--known` lists those left. Each call runs in a child process, which may die.
"""

from __future__ import annotations

import argparse
import json
import tracemalloc
from collections import Counter
from collections.abc import Callable, Sequence
from importlib import import_module

from partita.devices.kernels import output_size
from partita.devices.kernels.registry import registered_ops, table
from partita.graph.ops.record import record_of
from tests.devices.kernels.sweep.cases import read_graphs
from tests.devices.kernels.sweep.forking import CRASH, ENDLESS, ask
from tests.devices.kernels.sweep.sweeping import NUMPY_HAS_NO_MEMORY, Answer, Case, answers_of, load
from tests.devices.kernels.sweep.verdicts import LETTERS, NAMES, SAME, Verdict, read_verdicts, write_verdicts

CPU_S, EXTRA_BYTES = 1.0, 100 << 20
OUTPUT_BYTES = 16 << 20  # that outputs may need: kernels refuse more
UNTRACED_BYTES = 200 << 20  # of the process: stacks of threads, what libraries take for themselves
LIBRARIES = ("scipy.special", "scipy.linalg", "scipy.fft", "scipy.stats.qmc", "PIL.Image", "sqlite3")


def _answers(case: Case, numbers: Sequence[int], report: Callable[[str], object]) -> None:
    output_size.MEMORY = OUTPUT_BYTES
    answers_of(case, numbers, lambda a: report(json.dumps([a.code, a.message[:200], a.cpu_s, a.peak_bytes])))


def _traced_answers(case: Case, numbers: Sequence[int], report: Callable[[str], object]) -> None:
    if not tracemalloc.is_tracing():
        tracemalloc.start(1)
    _answers(case, numbers, report)


def _load_everything() -> None:
    """Imports what kernels import when they first run, so that no call is charged for it."""
    table().load_all()
    for module in LIBRARIES:
        import_module(module)


def _parsed(line: str) -> Answer:
    return Answer(line) if line in (CRASH, ENDLESS) else Answer(*json.loads(line))


def _wrong(verdict: Verdict, number: int, answer: Answer) -> str:
    """What is wrong with an answer, and not known; nothing if it is right."""
    ours = LETTERS[answer.code]
    if not verdict.is_right(number, ours) and not verdict.is_known(number, ours):
        return f"{answer.code}, not {NAMES[verdict.theirs[number]]}: {answer.message}"
    if answer.peak_bytes > OUTPUT_BYTES + EXTRA_BYTES:
        return f"{answer.peak_bytes >> 20} MB ({answer.code})"
    if answer.cpu_s > CPU_S and not answer.peak_bytes:
        return f"{answer.cpu_s:.1f} s of CPU"
    return "asks for memory that is not there" if answer.message.startswith(NUMPY_HAS_NO_MEMORY) else ""


def _noted(verdict: Verdict, answers: Sequence[Answer], *, may_grow: bool) -> str:
    """The known differences that are still there."""
    letters = [LETTERS[answer.code] for answer in answers]
    wrong = [not verdict.is_right(number, ours) for number, ours in enumerate(letters)]
    known = [may_grow or verdict.is_known(number, ours) for number, ours in enumerate(letters)]
    return "".join(o if w and k else SAME for o, w, k in zip(letters, wrong, known, strict=True))


def main() -> int:
    """Runs the sweep; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.devices.kernels.sweep", description=__doc__)
    parser.add_argument("names", nargs="*", help="ops or families; all by default")
    parser.add_argument("--memory", action="store_true", help="trace memory")
    parser.add_argument("--shrink", action="store_true", help="forget the known differences that are gone")
    parser.add_argument("--accept", action="store_true", help="note all differences as known; for new calls")
    parser.add_argument("--known", action="store_true", help="list known differences as well")
    options = parser.parse_args()
    verdicts = read_verdicts()
    pairs = [
        (case, verdict)
        for case, verdict in zip(map(load, read_graphs()), verdicts, strict=True)
        if not options.names or {case.op, record_of(case.op).family} & set(options.names)
    ]
    _load_everything()
    lines = iter(
        ask(
            [(case, number) for case, _ in pairs for number in range(len(case.questions))],
            _traced_answers if options.memory else _answers,
            OUTPUT_BYTES + EXTRA_BYTES + UNTRACED_BYTES,
        )
    )
    codes: Counter[str] = Counter()
    problems = known = 0
    for case, verdict in pairs:
        answers = [_parsed(next(lines)) for _ in case.questions]
        codes.update(answer.code for answer in answers)
        for number, answer in enumerate(answers):
            wrong = _wrong(verdict, number, answer)
            if options.known and not wrong and not verdict.is_right(number, LETTERS[answer.code]):
                wrong = f"known: {answer.code}, not {NAMES[verdict.theirs[number]]}: {answer.message}"
            if wrong:
                problems += not wrong.startswith("known")
                print(f"{record_of(case.op).family} {case.op} {case.names[number]}: {wrong}")
        if options.shrink or options.accept:
            verdict.known = _noted(verdict, answers, may_grow=options.accept)
        known += len(verdict.known) - verdict.known.count(SAME)
    if options.shrink or options.accept:
        write_verdicts(verdicts)
    ops = {case.op for case, _ in pairs}
    print(f"{len(ops)} of {len(registered_ops())} kernels, {len(pairs)} calls, {codes.total()} inputs:", dict(codes))
    print(f"{problems} problems, {known} known differences")
    return 1 if problems else 0


if __name__ == "__main__":
    raise SystemExit(main())
