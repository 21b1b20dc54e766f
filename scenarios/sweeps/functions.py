"""Which functions can be swept, and what tells one version of a function from another.

    swept_function(capacity.cost)     SweptFunction(call=<function cost>, name="capacity.cost", code="5f0c...")

Other processes import a function by its name. So it stands at the top of a module, or of a script, which they import
too (as `__mp_main__`): its calls must then be below `if __name__ == "__main__":`. A lambda, a function inside a
function, and one that was typed into a prompt or a notebook cannot be imported.

The hash of the code is of what it does: its bytecode, constants, names and defaults, and those of functions inside it;
lines, comments and the file do not count, docstrings do. Functions that it calls are not looked at. Another minor
version of Python has other bytecode.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from hashlib import blake2b
from inspect import unwrap
from pathlib import Path
from types import CodeType
from typing import Any

from attrs import frozen

from ...errors import InvalidArgumentError
from .axes import AxisValue

_LATER = "__mp_main__"  # how a worker process names the script that it was started from


def files_named(point: Mapping[str, AxisValue]) -> Iterable[Path]:
    """The files and folders that a point names: every `Path`, and each text that is the path of a file."""
    for value in point.values():
        for item in value if isinstance(value, tuple) else (value,):
            if isinstance(item, Path):
                yield item
            elif isinstance(item, str) and is_file(item):
                yield Path(item)


def is_file(text: str) -> bool:
    """Whether a text is the path of a file that exists."""
    try:
        return Path(text).is_file()
    except (OSError, ValueError):  # too long for a path, or with a zero in it
        return False


@frozen
class SweptFunction:
    """A function of axes: how it is called, named in files, and told from its other versions."""

    call: Callable[..., object]
    name: str
    code: str
    files: Callable[[Mapping[str, AxisValue]], Iterable[Path]] = files_named
    """the files whose content a point depends on"""


def swept_function(function: Callable[..., object]) -> SweptFunction:
    """A function as sweeps take it; InvalidArgumentError for one that cannot be imported by name."""
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", None)
    if not isinstance(module, str) or not isinstance(name, str):
        raise InvalidArgumentError(f"{function!r} has no name by which other processes import it; {_REMEDY}")
    if module == _LATER:
        raise InvalidArgumentError(
            "a worker process imports this script, and so comes to sweep(); "
            'put the call below `if __name__ == "__main__":`'
        )
    if _imported(module, name) is not function:
        raise InvalidArgumentError(f"{name!r} cannot be imported by name, as other processes do; {_REMEDY}")
    if module == "__main__" and not _is_script():
        raise InvalidArgumentError(
            f"{name!r} was defined at a prompt, where other processes cannot import it; {_REMEDY}"
        )
    return SweptFunction(function, f"{module}.{name}", code_hash(function))


_REMEDY = "define it with `def` at the top of a module"


def _imported(module: str, name: str) -> object:
    """What the name means in its module; None where it means nothing."""
    found: object = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def _is_script() -> bool:
    """Whether `__main__` is a file, or a module that was run by `-m`."""
    main = sys.modules["__main__"]
    file = getattr(main, "__file__", None)
    return getattr(main, "__spec__", None) is not None or (isinstance(file, str) and is_file(file))


def code_hash(function: Callable[..., object]) -> str:
    """A hash of what a function does, and of the function that it wraps; of the name alone where it has no bytecode."""
    described = [_described(layer) for layer in dict.fromkeys((function, unwrap(function)))]
    return blake2b(repr(described).encode(), digest_size=16).hexdigest()


def _described(function: Any) -> object:  # Any: what a function has, and another callable need not have
    code = getattr(function, "__code__", None)
    if not isinstance(code, CodeType):
        return f"{function.__module__}.{function.__qualname__}"
    defaults = [function.__defaults__ or (), sorted((function.__kwdefaults__ or {}).items())]
    return [_of_code(code), _of_constant(defaults)]


def _of_code(code: CodeType) -> object:
    names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
    shape = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)
    table = code.co_exceptiontable  # where `try` goes on
    return [code.co_name, shape, names, code.co_code, table, [_of_constant(constant) for constant in code.co_consts]]


def _of_constant(constant: object) -> object:
    """A constant such that equal ones have equal texts in every process."""
    if isinstance(constant, CodeType):
        return _of_code(constant)
    if isinstance(constant, list | tuple):
        return [_of_constant(item) for item in constant]
    if isinstance(constant, set | frozenset):
        return ["set", *sorted(repr(_of_constant(item)) for item in constant)]  # whose order changes between processes
    if isinstance(constant, dict):
        return ["dict", *([_of_constant(key), _of_constant(value)] for key, value in constant.items())]
    if constant is None or isinstance(constant, bool | int | float | complex | str | bytes | Path):
        return constant
    return getattr(constant, "__qualname__", type(constant).__qualname__)  # its text may have an address in it
