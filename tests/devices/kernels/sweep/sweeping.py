"""Runs the recorded calls with one input changed, in sessions, and says how each run ended.

    case = load(data)                         case.questions[3] is {"input_1": array}, case.names[3] says what it is
    answers_of(case, [3], report)             report(Answer("INVALID_ARGUMENT", message, seconds))

A call without calls before it runs in one session for all its changes; another one has a session for each.
"""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import trio

from partita.actors.sessions.local_session import open_session
from partita.actors.sessions.session import Session
from partita.errors import PartitaError
from partita.graph.dtypes import Array
from partita.graph.protos import GraphDef
from partita.graph.tensor import tensor_to_numpy
from tests.devices.kernels.sweep.cases import INPUT, TARGET
from tests.devices.kernels.sweep.mutations import mutations
from tests.hangs import JumpingClock, never_hangs

OK, WAITS = "OK", "DEADLINE_EXCEEDED"
NUMPY_HAS_NO_MEMORY = "OOM when allocating tensor: "  # the message where a kernel did not ask before


@dataclass(frozen=True)
class Answer:
    """How one run ended: its code, the message of an error, the seconds of CPU, and the memory if that is traced."""

    code: str
    message: str = ""
    cpu_s: float = 0.0
    peak_bytes: int = 0


@dataclass(frozen=True)
class Case:
    """One call: its graph, with placeholders of unknown shape in place of the inputs, and their values."""

    graph: GraphDef
    op: str
    inputs: dict[str, Array]
    questions: list[dict[str, Array]]
    names: list[str]

    @property
    def is_alone(self) -> bool:
        """Whether nothing runs before the call, so that all its runs may share a session."""
        return len(self.graph.node) == 1 + len(self.inputs)


def load(data: bytes) -> Case:
    """A case from its serialised graph."""
    graph = GraphDef.FromString(data)
    inputs: dict[str, Array] = {}
    for node in graph.node:
        if node.name.startswith(INPUT) and node.op == "Const":
            inputs[node.name] = tensor_to_numpy(node.attr["value"].tensor)
            del node.attr["value"]
            node.op = "Placeholder"
            node.attr["shape"].shape.unknown_rank = True
    changes = [(f"{name}: {what}", {name: new}) for name, value in inputs.items() for what, new in mutations(value)]
    op = next(node.op for node in graph.node if node.name == TARGET)
    return Case(graph, op, inputs, [{}] + [new for _, new in changes], ["unchanged"] + [what for what, _ in changes])


async def _answer(session: Session, case: Case, number: int) -> Answer:
    feeds: dict[str, Any] = {f"{name}:0": value for name, value in (case.inputs | case.questions[number]).items()}
    started, held = time.process_time(), tracemalloc.get_traced_memory()[0]
    tracemalloc.reset_peak()
    code, message = WAITS, ""
    try:
        with trio.move_on_after(1.0):
            await session.run([], feeds, [TARGET])
            code = OK
    except PartitaError as error:
        code, message = error.code, error.message
    except Exception as error:  # noqa: BLE001 - the failure that is looked for
        code, message = "PYTHON", repr(error)
    return Answer(code, message, time.process_time() - started, tracemalloc.get_traced_memory()[1] - held)


async def _answers(case: Case, numbers: Sequence[int], report: Callable[[Answer], object]) -> None:
    for together in [numbers] if case.is_alone else [[number] for number in numbers]:
        async with open_session(case.graph, seed=1, thread_limit_s=60, budget_s=60) as session:
            for number in together:
                report(await _answer(session, case, number))


def answers_of(case: Case, numbers: Sequence[int], report: Callable[[Answer], object]) -> None:
    """Reports the answers to some questions in order. A run that waits for another step ends at once."""
    run = partial(never_hangs(_answers), case=case, numbers=numbers, report=report)
    trio.run(run, clock=JumpingClock())
