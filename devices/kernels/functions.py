"""How deferred kernels call functions of the graph's library: by a service that whoever runs them hands in.

    f = node.function("f")                       when the kernel is made: the function that an attr names
    call.function(f, scope)(arguments, done, failed)                       in a step, on behalf of a call

A dataset carries `f` from the node that names it to the node that pulls.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from ...errors import PartitaError
    from ...graph import NameAttrList
    from ...graph.library.function_library import FunctionLibrary
    from .registry import Call

Values = Sequence[Any]  # tensors of any type
TakeResults = Callable[[Values], None]
"""takes the results of a function, one tensor each"""
Failed = Callable[["PartitaError"], None]


class Scope:
    """What random ops of functions remember between calls lives as long as this object."""


class Function(Protocol):
    """A function, called on behalf of one call of a kernel."""

    def __call__(self, arguments: Sequence[Any], done: TakeResults, failed: Failed) -> None:
        """Calls the function. `done` gets the results, or `failed` the error, perhaps before this returns.

        An error fails neither the step nor the call of the kernel by itself. If the step ends first, neither is called.
        """


class FunctionProvider(Protocol):
    """A library of functions that can be called."""

    library: FunctionLibrary

    def function_for(self, call: Call, function: NameAttrList, scope: Scope) -> Function:
        """A function, to be called on behalf of a call: as `Call.function`."""


@dataclass(frozen=True, slots=True, eq=False)
class NamedFunction:
    """A function that an attr names, and the library that has it."""

    function: NameAttrList
    provider: FunctionProvider
