"""Parameters that are said once: a function that hands its arguments on has those of the function that gets them.

    @parameters_of(open_session)
    def open_elsewhere(*arguments: Any, **keywords: Any) -> Elsewhere:
        return Elsewhere(open_session(*arguments, **keywords))

Type checkers, `help` and `inspect.signature` see the parameters of `open_session`, and what `open_elsewhere` returns.
Wrong arguments are refused by the function that gets them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")
_Self = TypeVar("_Self")


def parameters_of(
    source: Callable[_Parameters, object],
) -> Callable[[Callable[..., _Result]], Callable[_Parameters, _Result]]:
    """Gives a function the parameters of another function."""

    def decorate(function: Callable[..., _Result]) -> Callable[_Parameters, _Result]:
        _show(function, source)
        return function

    return decorate


def parameters_of_method(
    source: Callable[Concatenate[Any, _Parameters], object],  # Any: an object of another class
) -> Callable[[Callable[Concatenate[_Self, ...], _Result]], Callable[Concatenate[_Self, _Parameters], _Result]]:
    """Gives a method the parameters of a method of another class."""

    def decorate(
        function: Callable[Concatenate[_Self, ...], _Result],
    ) -> Callable[Concatenate[_Self, _Parameters], _Result]:
        _show(function, source)
        return function

    return decorate


def _show(function: Callable[..., object], source: Callable[..., object]) -> None:
    result = inspect.signature(function).return_annotation
    function.__dict__["__signature__"] = inspect.signature(source).replace(return_annotation=result)
