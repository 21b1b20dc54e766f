"""No value of an input surfaces as a Python exception: every kernel answers with the code that TensorFlow gives.

The calls, and TensorFlow's answers, are files; `python -m tests.devices.kernels.sweep` asks all questions, also for
time and memory. Here calls that need others before them are asked one question in six.
"""

from __future__ import annotations

import resource
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from partita.devices.kernels import output_size
from partita.devices.kernels.registry import registered_ops, table
from partita.graph.ops.record import record_of
from tests.devices.kernels.sweep.cases import read_graphs
from tests.devices.kernels.sweep.sweeping import NUMPY_HAS_NO_MEMORY, Answer, Case, answers_of, load
from tests.devices.kernels.sweep.verdicts import LETTERS, Verdict, read_verdicts

UNCOVERED = (Path(__file__).parent / "data" / "uncovered.txt").read_text().split()
EVERY = 6


@cache
def _pairs() -> dict[str, list[tuple[Case, Verdict]]]:
    families: dict[str, list[tuple[Case, Verdict]]] = defaultdict(list)
    for data, verdict in zip(read_graphs(), read_verdicts(), strict=True):
        case = load(data)
        families[record_of(case.op).family].append((case, verdict))
    return families


def _asked(case: Case, verdict: Verdict) -> list[int]:
    """The questions of the suite: none to which the answer is known to take too long."""
    first = zlib.crc32(case.op.encode()) % EVERY
    return [
        i for i, known in enumerate(verdict.known) if known not in "XZ" and (case.is_alone or i % EVERY in (0, first))
    ]


@pytest.fixture
def _little_memory(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Outputs may have 60 MB, and the process no more than 2 GB beyond what it has."""
    table().load_all()
    monkeypatch.setattr(output_size, "MEMORY", 60 << 20)
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + (2 << 30), hard))
    yield
    resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


@pytest.mark.usefixtures("_little_memory")
@pytest.mark.parametrize("family", sorted(_pairs()))
def test_every_answer_is_that_of_tensorflow(family: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each answer has TensorFlow's code, or is among the differences that are known, which were not more before.

    Where there is no memory for an output, the kernel has to say so before it asks for it.
    """
    monkeypatch.chdir(tmp_path)
    wrong: list[str] = []
    for case, verdict in _pairs()[family]:
        numbers, answers = _asked(case, verdict), list[Answer]()
        answers_of(case, numbers, answers.append)
        for number, answer in zip(numbers, answers, strict=True):
            ours = LETTERS[answer.code]
            if not verdict.is_right(number, ours) and not verdict.is_known(number, ours):
                wrong.append(f"{case.op} {case.names[number]}: {answer.code} {answer.message}")
            elif answer.message.startswith(NUMPY_HAS_NO_MEMORY):
                wrong.append(f"{case.op} {case.names[number]} asks for memory that is not there")
    assert not wrong, "\n".join(wrong)


def test_every_kernel_is_swept_but_few() -> None:
    """Each kernel has a recorded call, except those on a list that may only become shorter."""
    swept = {case.op for pairs in _pairs().values() for case, _ in pairs}
    assert sorted(registered_ops() - swept) == UNCOVERED
    assert len(swept) >= 1050


def test_answers_belong_to_the_calls() -> None:
    """There is one answer for each question, and the sweep is as large as it was."""
    counts: Counter[str] = Counter()
    for pairs in _pairs().values():
        for case, verdict in pairs:
            assert (case.op, len(case.questions)) == (verdict.op, len(verdict.theirs))
            assert len(verdict.known) == len(verdict.theirs)
            counts["asked"] += len(_asked(case, verdict))
    assert counts["asked"] > 20_000
