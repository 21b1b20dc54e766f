"""Random generators of functions that kernels call: as in TensorFlow, every iterator over a dataset begins them anew.

Functions with random ops are compiled once more for each scope at work, with generators of their own. When a scope is
gone, what was compiled for it is kept for the next one, so that a program with one iterator at a time compiles once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar
from weakref import WeakKeyDictionary, finalize

import numpy as np

from ....graph.ops.record import State, record_of

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

    __slots__ = ("_free", "_is_random", "_library", "_make", "_num_begun", "_of")

    def __init__(self, library: FunctionLibrary, make: Callable[[], Functions]) -> None:
        self._library = library
        self._make = make
        self._of: WeakKeyDictionary[Scope, Functions] = WeakKeyDictionary()
        self._free: list[Functions] = []
        self._is_random: dict[str, bool] = {}
        self._num_begun = 0

    def matter_to(self, name: str) -> bool:
        """Whether a function has random ops that remember, itself or in those that it calls."""
        is_random = self._is_random.get(name)
        if is_random is None:
            is_random = self._is_random[name] = self._has_random_ops(name)
        return is_random

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

    def _has_random_ops(self, name: str) -> bool:
        found = (self._library.find(name) for name in self._library.closure([name]))
        functions = [function for function in found if function is not None]
        return any(record_of(node.op).state is State.RANDOM for function in functions for node in function.node_def)
