"""Sessions run graphs: each device has an actor, and actors exchange tensors at a rendezvous only.

async with open_session(graph_def, "cpu:4") as session:
    (loss,) = await session.run("loss:0", {"x:0": batch})

with BlockingSession(graph_def, "cpu:4") as session:        scripts and notebooks
    (loss,) = session.run("loss:0", {"x:0": batch})

async with open_asyncio_session(graph_def, "cpu:4") as session:      asyncio programs
    (loss,) = await session.run("loss:0", {"x:0": batch})

async with open_cluster_session(graph_def, "cluster.toml") as session:      a worker for each task
    (loss,) = await session.run("loss:0", {"x:0": batch})

async with open_saved_model("model", devices="cpu:4") as model:
    scores = (await model.run({"x": batch}))["scores"]

The rooms: `plans` compiles the partition of a device to a plan, `running` has the actors that run plans, `sessions` has
what users open. Names are imported when they are first used, because compiling plans needs neither sessions nor trio.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import load_lazily

if TYPE_CHECKING:
    from ..graph import CallableOptions as CallableOptions, RunMetadata as RunMetadata, RunOptions as RunOptions
    from .running.threads import run_in_thread as run_in_thread
    from .sessions.bridges.asyncio_session import (
        AsyncioFunctionRuntime as AsyncioFunctionRuntime,
        AsyncioSavedModel as AsyncioSavedModel,
        AsyncioSession as AsyncioSession,
        open_asyncio_cluster_session as open_asyncio_cluster_session,
        open_asyncio_function_runtime as open_asyncio_function_runtime,
        open_asyncio_saved_model as open_asyncio_saved_model,
        open_asyncio_session as open_asyncio_session,
    )
    from .sessions.bridges.blocking import BlockingSession as BlockingSession
    from .sessions.cluster_session import open_cluster_session as open_cluster_session
    from .sessions.function_runtime import (
        FunctionRuntime as FunctionRuntime,
        InstantiateOptions as InstantiateOptions,
        open_function_runtime as open_function_runtime,
    )
    from .sessions.local_session import open_session as open_session
    from .sessions.saved_model import SavedModelSession as SavedModelSession, open_saved_model as open_saved_model
    from .sessions.session import Session as Session
    from .sessions.session_callable import SessionCallable as SessionCallable
    from .sessions.virtual_sessions import StepRecording as StepRecording

load_lazily(__name__)
