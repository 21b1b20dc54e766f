"""Asks questions in child processes, because some kill the process, fill its memory or never end.

The child answers one after the other, and writes each answer down at once. Where it dies, the answer is CRASH, where it
takes too long it is killed and the answer is ENDLESS; another child goes on with the next question.
"""

from __future__ import annotations

import os
import resource
import select
import signal
import sys
import tempfile
from collections.abc import Callable, Sequence
from itertools import groupby
from pathlib import Path
from typing import TypeVar

Question = TypeVar("Question")
Answerer = Callable[[Question, Sequence[int], Callable[[str], object]], object]
"""takes a case, the numbers of its questions, and what takes the answers, one line each, in order"""

CRASH, ENDLESS = "CRASH", "ENDLESS"
AT_ONCE = 3000  # questions to one child
PATIENCE_S = 6.0


def ask(questions: Sequence[tuple[Question, int]], answer: Answerer[Question], memory: int) -> list[str]:
    """The answers to all questions, each a number of a case; each case has a folder of its own to run in.

    A child may have `memory` bytes more than this process."""
    answers: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        while len(answers) < len(questions):
            print(f"{len(answers)} of {len(questions)}", file=sys.stderr, flush=True)
            answers += _ask_child(questions[len(answers) :][:AT_ONCE], answer, folder, memory)
    return answers


def _ask_child(
    questions: Sequence[tuple[Question, int]], answer: Answerer[Question], folder: str, memory: int
) -> list[str]:
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        _be_child(questions, answer, folder, memory, writing)
    os.close(writing)
    text, ending = "", CRASH
    while True:
        ready, _, _ = select.select([reading], [], [], PATIENCE_S)
        if not ready:
            os.kill(child, signal.SIGKILL)
            ending = ENDLESS
            break
        data = os.read(reading, 1 << 16).decode()
        if not data:
            break
        text += data
    os.close(reading)
    os.waitpid(child, 0)
    answers = text.splitlines()
    return answers if len(answers) == len(questions) else [*answers, ending]


def _be_child(
    questions: Sequence[tuple[Question, int]], answer: Answerer[Question], folder: str, memory: int, writing: int
) -> None:
    try:
        silence = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silence, 1)
        os.dup2(silence, 2)
        used = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        resource.setrlimit(resource.RLIMIT_AS, (used + memory, used + memory))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        for case, group in groupby(questions, key=lambda question: question[0]):
            own = f"{folder}/{id(case)}"
            Path(own).mkdir(exist_ok=True)
            os.chdir(own)
            answer(case, [number for _, number in group], lambda line: os.write(writing, f"{line}\n".encode()))
    finally:
        os._exit(0)
