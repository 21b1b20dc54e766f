"""Packages that import the module of a public name when the name is first used.

    if TYPE_CHECKING:  # what type checkers read, and what `load_lazily` reads: a name is said here and nowhere else
        from .cutting import cut as cut

    load_lazily(__name__)  # `package.cut` imports package/cutting.py; `__all__` is ["cut"]

`cut as cut` is how type checkers are told that a package passes a name on.
A public name hides a module of the same name: `partita.graph.gradients` is the function, also after the package
`partita.graph.gradients` has been imported.
"""

from __future__ import annotations

import io
import re
import sys
from importlib import import_module
from types import ModuleType

from .collector import collector_paused


class LazyPackage(ModuleType):
    """A package that imports the module of a public name at the first access."""

    module_by_name: dict[str, str]
    """By public name its module as `import_module` takes it: `.cutting`."""

    def __getattr__(self, name: str) -> object:
        module = self.__dict__.get("module_by_name", {}).get(name)
        if module is None:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}", name=name, obj=self)
        with collector_paused():  # classes and functions stay for good: a third of the time of importing sessions
            value = getattr(import_module(module, self.__name__), name)
        self.__dict__[name] = value
        return value

    def __setattr__(self, name: str, value: object) -> None:
        # The import system sets every module it loads as an attribute of its package; that must not hide a public name.
        if not (isinstance(value, ModuleType) and name in self.module_by_name):
            super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self.module_by_name})


def _names_for_type_checkers(source: str) -> dict[str, str]:
    """What the source of a package imports `if TYPE_CHECKING:`, by name the module.

    The block holds nothing but `from .module import name as name`, in any layout; a test compares this with what `ast`
    reads, whose tree of `partita.graph` takes 2 ms where this takes 0.4.
    """
    _, _, block = source.partition("\nif TYPE_CHECKING:\n")
    modules, module = {}, ""
    for found, name in re.findall(r"\bfrom (\.[.\w]*) import\b|\b(\w+) as \2\b", block):
        if found:
            module = found
        else:
            modules[name] = module
    return modules


def load_lazily(package: str) -> None:
    """Makes a package import its public names on first use: those that its source imports `if TYPE_CHECKING:`.

    The package's `__init__` calls this with its own `__name__`, and gets its `__all__`.
    """
    module = sys.modules[package]
    with io.open_code(str(module.__file__)) as source:  # pathlib takes longer to import than all of this
        names = _names_for_type_checkers(source.read().decode())
    module.__dict__.update(module_by_name=names, __all__=sorted(names))
    module.__class__ = LazyPackage
