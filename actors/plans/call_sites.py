"""Where a node stands that runs in the plan of its caller: in which function, called by which node of which function.

A plan that has taken functions in has the nodes of several graphs. Each keeps the name that it has in its own, which
kernels and errors go by, and knows the calls that lead to it. For node `neg` of g, which node `c` of f calls:

    name "neg"    site (g, "c") around it (f, "")      an error reads: node 'neg' in function 'g', called by ... 'c'
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ...errors import PartitaError
    from .binding import Binder


class TakenInCall(NamedTuple):
    """A call of `function` by the node `caller` of the function called at `around`.

    Without an `around` whoever runs the plan knows the caller. `binder` makes the kernels of the function's nodes.
    """

    function: str
    binder: Binder
    caller: str
    around: TakenInCall | None


class NameInCall(str):
    """The name of a node in its function, and where that is called."""

    __slots__ = ("site",)
    site: TakenInCall

    @classmethod
    def at(cls, site: TakenInCall, name: str) -> NameInCall:
        """The name of a node of the function called at `site`."""
        own = cls(name)
        own.site = site
        return own


def add_calls(name: str, error: PartitaError) -> PartitaError:
    """Adds to the error of the node of that name the calls that the plan has taken in."""
    site = name.site if isinstance(name, NameInCall) else None
    while site is not None:
        error.inside(site.function)
        if site.around is not None:
            error.located(node=site.caller)
        site = site.around
    return error
