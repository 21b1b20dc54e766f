"""SavedModels that run: a session on the graph of a SavedModel, whose signatures are called by name.

When a model is opened, its variables are restored and then its initialiser runs, in the order of TensorFlow's loaders.
Variables keep their values from call to call.

    async with open_saved_model("model", devices="cpu:2") as model:
        scores = await model.run({"x": batch})
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import trio

from ...errors import InvalidArgumentError
from ...graph.formats.saved_model import DEFAULT_SIGNATURE, SERVING_TAGS, SavedGraph, Signature, load_saved_model
from ...graph.suggestions import meant
from ..running.threads import run_in_thread
from .lifetime import check_is_trio
from .local_session import open_session
from .session import Session

if TYPE_CHECKING:
    from types import TracebackType

    import numpy.typing as npt

    from ...devices.cluster import Cluster
    from ...graph.dtypes import Array


class SavedModelSession:
    """A SavedModel that is ready to run. `open_saved_model` makes it."""

    def __init__(self, saved: SavedGraph, session: Session) -> None:
        self.saved = saved
        self.session = session

    async def run(
        self, feeds: Mapping[str, npt.ArrayLike] | None = None, signature: str = DEFAULT_SIGNATURE
    ) -> dict[str, Array]:
        """Runs a signature on the values of its inputs, by name; returns the values of its outputs, by name.

        Raises NotFoundError for an unknown signature, InvalidArgumentError for unknown or missing inputs, and the
        errors of the step.
        """
        spec = self.saved.signature(signature)
        tensor_feeds = feeds_of(spec, feeds or {}, signature)
        values = await self.session.run([output.tensor for output in spec.outputs.values()], tensor_feeds)
        return dict(zip(spec.outputs, values, strict=True))


def feeds_of(signature: Signature, feeds: Mapping[str, npt.ArrayLike], name: str) -> dict[str, npt.ArrayLike]:
    """Values by tensor, from values by input name of the signature `name`; inputs that are not fed get defaults."""
    values: dict[str, npt.ArrayLike] = {**signature.defaults, **feeds}
    unknown, missing = values.keys() - signature.inputs.keys(), signature.inputs.keys() - values.keys()
    if unknown or missing:
        problem = f"has no input {min(unknown)!r}" if unknown else f"needs the input {min(missing)!r}"
        inputs = ", ".join(map(repr, signature.inputs)) or "none"
        hint = meant(min(unknown), signature.inputs) if unknown else ""
        raise InvalidArgumentError(f"signature {name!r} {problem}; its inputs are {inputs}{hint}")
    return {signature.inputs[key].tensor: value for key, value in values.items()}


async def make_ready(session: Session, saved: SavedGraph) -> None:
    """Restores the variables of a model and runs its initialiser, in a session on its graph."""
    assets = {tensor: _text(path) for tensor, path in saved.assets.items()}
    if saved.restore_op is not None and saved.filename_tensor is not None and saved.has_variables:
        await session.run([], {**assets, saved.filename_tensor: _text(saved.variables)}, saved.restore_op)
    if saved.init_op is not None:
        await session.run([], assets, saved.init_op)


def _text(path: str | Path) -> Array:
    """A path as a scalar string tensor."""
    scalar = np.empty((), object)
    scalar[()] = os.fsencode(path)
    return scalar


class _OpenedModel(AbstractAsyncContextManager[SavedModelSession]):
    """Opens a SavedModel for an `async with` block; a class for the reason that `lifetime.Block` is one."""

    def __init__(
        self, folder: str | Path, tags: tuple[str, ...], devices: str | Path | Cluster, settings: Mapping[str, Any]
    ):
        self._arguments = folder, tags, devices, settings

    @trio.lowlevel.enable_ki_protection
    async def __aenter__(self) -> SavedModelSession:
        folder, tags, devices, settings = self._arguments
        check_is_trio()
        saved = await run_in_thread(load_saved_model, folder, tags)
        async with AsyncExitStack() as stack:
            session = await stack.enter_async_context(open_session(saved.graph_def, devices, **settings))
            await make_ready(session, saved)
            self._session = stack.pop_all()
        return SavedModelSession(saved, session)

    @trio.lowlevel.enable_ki_protection
    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._session.__aexit__(kind, error, trace)


def open_saved_model(
    folder: str | Path,
    tags: Iterable[str] = SERVING_TAGS,
    devices: str | Path | Cluster = "cpu:1",
    **settings: Any,  # as open_session
) -> AbstractAsyncContextManager[SavedModelSession]:
    """Loads a SavedModel, opens a session on its graph, restores its variables and runs its initialiser.

    `settings` are the keywords of `open_session`. Raises as `load_saved_model`, `open_session` and `Session.run`.
    """
    return _OpenedModel(folder, tuple(tags), devices, settings)
