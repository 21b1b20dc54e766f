"""Partial runs give TensorFlow's values, and its messages for refused calls.

The actions of a case (set-ups, partial runs, ordinary runs) are done in order in one session. TensorFlow's Python code
checks the shapes of feeds itself, without a status code. Which missing feed a message names depends on hash order, so
names are not compared.
"""

from __future__ import annotations

import re
from typing import Any

import pytest

from partita.actors.sessions.local_session import open_session
from partita.actors.sessions.session import Session
from partita.errors import PartitaError
from partita.graph.dtypes import Array
from tests.conformance.corpus import Case, cases
from tests.conformance.test_values import check_close
from tests.runs import HARD_PLACEMENT, cpus

CASES = cases("partial_run")


def said(message: str) -> str:
    """The part of a message that does not depend on which missing feed is named."""
    return re.sub(r"^Fetch \S+ can't", "Fetch can't", message)


async def act(session: Session, case: Case, handles: dict[str, str], action: dict[str, Any]) -> list[Array]:
    """Does one action of a case and returns its fetches."""
    if action["do"] == "setup":
        handle = await session.partial_run_setup(action["fetches"], action["feeds"], action["targets"])
        handles[action["handle"]] = handle
        return []
    feeds = {name: case.feeds[key] for name, key in action["feeds"].items()}
    if action["do"] == "session_run":
        return await session.run(action["fetches"], feeds, action["targets"])
    return await session.partial_run(handles[action["handle"]], action["fetches"], feeds)


async def run_case(case: Case, **settings: Any) -> int:
    """Does all actions, compares values and errors, and returns the number of actions.

    `settings` are keywords of `open_session`.
    """
    handles: dict[str, str] = {}
    devices = cpus(len(case.devices))
    async with open_session(case.graph_def(), devices, config=HARD_PLACEMENT, **settings) as session:
        for action in case.info["actions"]:
            expected = action.get("error")
            if expected is None:
                values = await act(session, case, handles, action)
                for name, key, value in zip(action["fetches"], action["expected"], values, strict=False):
                    check_close(case, name, value, case.expected[key])
                assert len(values) == len(action["expected"])
            else:
                with pytest.raises(PartitaError) as caught:
                    await act(session, case, handles, action)
                assert caught.value.code == (expected["code"] or "INVALID_ARGUMENT")
                assert said(caught.value.message).startswith(said(expected["core"]))
    return len(case.info["actions"])


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.path)
async def test_partial_runs_equal_tensorflow(case: Case) -> None:
    """Every action of a case ends as in TensorFlow."""
    assert await run_case(case) > 1
