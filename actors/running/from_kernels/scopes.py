"""Random generators of functions that kernels call: as in TensorFlow, every iterator over a dataset begins them anew.

Functions with random ops, or others whose kernels go on where they were (`OpRecord.is_per_node`), are compiled once
more for each scope at work, with generators of their own. When a scope is gone, what was compiled for it is kept for
the next one, so that a program with one iterator at a time compiles once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar
from weakref import WeakKeyDictionary, finalize

import numpy as np

from ....graph.ops.record import record_of

if TYPE_CHECKING:
    from ....devices.kernels.functions import Scope
    from ....graph.library.function_library import FunctionLibrary


class Restartable(Protocol):
    """Compiled functions with random generators of their own."""

    def restart_generators(self, seed: int) -> None:
        """Begins them anew; nodes without seeds draw by this one."""


Functions = TypeVar("Functions", bound=Restartable)


class Scopes(Generic[Functions]):
    """The functions of each scope; `make` compiles nothing yet."""

    __slots__ = ("_free", "_library", "_make", "_num_begun", "_of", "_remembers")

    def __init__(self, library: FunctionLibrary, make: Callable[[], Functions]) -> None:
        self._library = library
        self._make = make
        self._of: WeakKeyDictionary[Scope, Functions] = WeakKeyDictionary()
        self._free: list[Functions] = []
        self._remembers: dict[str, bool] = {}
        self._num_begun = 0

    def matter_to(self, name: str) -> bool:
        """Whether a function has nodes whose kernels keep something for them, itself or in those that it calls."""
        remembers = self._remembers.get(name)
        if remembers is None:
            remembers = self._remembers[name] = self._has_kept(name)
        return remembers

    def of(self, scope: Scope, seed: int) -> Functions:
        """The functions of a scope; `seed` is that of the device, from which nodes without seeds draw."""
        functions = self._of.get(scope)
        if functions is None:
            functions = self._of[scope] = self._free.pop() if self._free else self._make()
            self._num_begun += 1
            words = np.random.SeedSequence([seed, self._num_begun]).generate_state(1, np.uint64)
            functions.restart_generators(int(words[0]) >> 1)
            finalize(scope, self._free.append, functions).atexit = False
        return functions

    def _has_kept(self, name: str) -> bool:
        names = self._library.closure([name])
        functions = [function for function in map(self._library.find, names) if function is not None]
        remembers = any(record_of(node.op).is_per_node for function in functions for node in function.node_def)
        if not remembers:  # then nor do those that it calls, of which each would be asked for all below it again
            self._remembers.update(dict.fromkeys(names, False))
        return remembers
