"""SavedModels that run: a session on the graph of one, its variables restored, its signatures to call by name.

Flows in: a folder, tags, devices; then values by the names of a signature's inputs. Flows out: values by the names of
its outputs. Always holds: when a model is handed out its variables are restored and its initialiser has run, in this
order, as the loaders of TensorFlow do it; state is kept from call to call.

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
from .session import Session, open_session

if TYPE_CHECKING:
    from types import TracebackType

    import numpy.typing as npt

    from ...devices.cluster import Cluster
    from ...graph.dtypes import Array


class SavedModelSession:
    """A SavedModel that is ready to run. Made by `open_saved_model`."""

    def __init__(self, saved: SavedGraph, session: Session) -> None:
        self.saved = saved
        self.session = session

    async def run(
        self, feeds: Mapping[str, npt.ArrayLike] | None = None, signature: str = DEFAULT_SIGNATURE
    ) -> dict[str, Array]:
        """Runs a signature: the values of its outputs by name, from those of its inputs by name.

        Raises NotFoundError for a signature that does not exist, InvalidArgumentError for inputs that are not its own
        or missing, and whatever the step raises.
        """
        found = self.saved.signature(signature)
        fed = feeds_of(found, feeds or {}, signature)
        values = await self.session.run([spec.tensor for spec in found.outputs.values()], fed)
        return dict(zip(found.outputs, values, strict=True))


def feeds_of(signature: Signature, feeds: Mapping[str, npt.ArrayLike], name: str) -> dict[str, npt.ArrayLike]:
    """Values by tensor from values by input of the signature of that name; defaults stand in for what is not fed."""
    given: dict[str, npt.ArrayLike] = {**signature.defaults, **feeds}
    unknown, missing = given.keys() - signature.inputs.keys(), signature.inputs.keys() - given.keys()
    if unknown or missing:
        what = f"has no input {min(unknown)!r}" if unknown else f"needs the input {min(missing)!r}"
        inputs = ", ".join(map(repr, signature.inputs)) or "none"
        hint = meant(min(unknown), signature.inputs) if unknown else ""
        raise InvalidArgumentError(f"signature {name!r} {what}; its inputs are {inputs}{hint}")
    return {signature.inputs[key].tensor: value for key, value in given.items()}


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
    """A block in which a SavedModel is ready; a class for the reason that `lifetime.Block` is one."""

    def __init__(
        self, folder: str | Path, tags: tuple[str, ...], devices: str | Path | Cluster, settings: Mapping[str, Any]
    ):
        self._asked = folder, tags, devices, settings

    @trio.lowlevel.enable_ki_protection
    async def __aenter__(self) -> SavedModelSession:
        folder, tags, devices, settings = self._asked
        saved = await trio.to_thread.run_sync(load_saved_model, folder, tags)
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
    """Loads a SavedModel, opens a session on its graph and makes it ready; `settings` are those of `open_session`.

    Raises as `load_saved_model` and `open_session` do, and what restoring raises.
    """
    return _OpenedModel(folder, tuple(tags), devices, settings)
