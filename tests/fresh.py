"""Calls a function in a fresh process, in which nothing of this package has been loaded: the first graph is the first.

    fresh_process(printed, ["show", "mlp.pb"])    what `printed` returns there; its error is raised here

The processes are forked from one that has imported the libraries alone, which takes a tenth of a start of Python.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from multiprocessing.context import BaseContext
from typing import ParamSpec, TypeVar

_P = ParamSpec("_P")
_T = TypeVar("_T")
_LIBRARIES = ("attrs", "cattrs", "click", "google.protobuf", "ml_dtypes", "numpy", "pytest", "rich", "simpy", "trio")


@cache
def _context() -> BaseContext:
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(_LIBRARIES))
    return context


def fresh_process(function: Callable[_P, _T], *arguments: _P.args, **named: _P.kwargs) -> _T:
    """The result of a function of a test module, called in a process of its own."""
    with ProcessPoolExecutor(1, mp_context=_context()) as pool:
        return pool.submit(function, *arguments, **named).result()
