"""Requests that TensorFlow refuses are refused with the same status code and a message about the same thing.

The cases are in errors.json and errors2.json, for sessions and for importing alone. Requests that TensorFlow accepts
must run. After a refused run the session still works: a node that can run alone is run.
"""

from __future__ import annotations

import re

import pytest

from partita.actors.sessions.local_session import open_session
from partita.actors.sessions.session import Session
from partita.errors import PartitaError
from partita.graph.checked_import import import_graph_def
from partita.graph.graph import Graph
from partita.graph.graphdef.importer import graph_def_to_graph
from tests.conformance.corpus import ErrorCase, error_cases
from tests.runs import HARD_PLACEMENT, cpus, run_one

IMPORTED = error_cases("errors") + error_cases("errors2")
CASES = [case for case in IMPORTED if case.code != "CRASH"]
CRASHES = [case for case in IMPORTED if case.code == "CRASH"]
_PASSED = re.compile(r"\{\{function_node \S+\}\} ")
_TOO_FEW = "InstantiateOptions.input_devices must have the same length as the number of arguments"
_NAMED = re.compile(r"'([^']+)'|\{\{node ([^}]+)\}\}|[Nn]ode (\w+)")


def speaks_of_the_same(message: str, core: str) -> bool:
    """Whether a message begins like TensorFlow's, or names all that TensorFlow's names.

    Not compared are the callers that an error was passed through, and the wording for too few arguments.
    """
    core = _PASSED.sub("", core)
    if core.startswith(_TOO_FEW):
        return "arguments, but" in message
    names = {next(filter(None, groups)) for groups in _NAMED.findall(core)}
    return core[:24] in message or bool(names and all(name in message for name in names))


def message_of(error: PartitaError) -> str:
    """The text of an error with its place; the node may be in the place and not in the message."""
    return f"{error} {error.node or ''}"


async def run_something_else(session: Session, case: ErrorCase) -> bool:
    """Runs the first node that can run alone; False if the graph has none."""
    alone = [node.name for node in graph_def_to_graph(case.graph_bytes()).op_nodes() if node.op in ("Const", "NoOp")]
    if alone:
        await session.run((), targets=alone[:1])
    return bool(alone)


async def answer(case: ErrorCase) -> tuple[str, str]:
    """Status code and message of the request; checks that the session works after a failed run."""
    try:
        async with open_session(
            case.graph_bytes(), cpus(int(case.info["n_devices"])), config=HARD_PLACEMENT
        ) as session:
            try:
                await run_one(session, case.feeds(), case.info["fetches"], case.info["targets"])
            except PartitaError as error:
                await run_something_else(session, case)
                return error.code, message_of(error)
    except PartitaError as error:
        return error.code, message_of(error)
    return "OK", ""


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
async def test_code_and_message(case: ErrorCase) -> None:
    """The code is TensorFlow's; the message begins like its message or names the same nodes."""
    code, message = await answer(case)
    assert code == case.code, message
    assert speaks_of_the_same(message, case.core) or code == "OK", f"{message!r} is not about {case.core!r}"


@pytest.mark.parametrize("case", CRASHES, ids=lambda case: case.name)
async def test_where_tensorflow_dies_there_is_an_error(case: ErrorCase) -> None:
    """An endless recursion is stopped, and the session can be used afterwards."""
    code, message = await answer(case)
    assert code == "RESOURCE_EXHAUSTED", message


def imported(case: ErrorCase) -> tuple[str, str]:
    """Status code and message of an import; checks that a failed import leaves the graph empty."""
    graph = Graph()
    try:
        import_graph_def(case.graph_bytes(), graph)
    except PartitaError as error:
        return ("graph is no longer empty" if graph.num_nodes > 2 else error.code), message_of(error)
    return "OK", ""


@pytest.mark.parametrize("case", IMPORTED, ids=lambda case: case.name)
def test_import_checks_every_node(case: ErrorCase) -> None:
    """Importing refuses exactly what TensorFlow's import refuses, which is more than a session does."""
    code, message = imported(case)
    expected, core = case.import_answer
    assert code == expected, message
    assert speaks_of_the_same(message, core) or code == "OK", f"{message!r} is not about {core!r}"


def test_the_cases_are_all_there() -> None:
    """The committed part has 46 graphs, 9 malformed loops and 27 graphs with functions; TensorFlow accepts some."""
    assert len(IMPORTED) >= 46 + 9 + 27
    assert len(CASES) + len(CRASHES) == len(IMPORTED)
    assert 5 <= sum(case.code == "OK" for case in CASES) < len(CASES)
