"""Packages that import the module of a public name when the name is first used.

    if TYPE_CHECKING:                       # what type checkers read
        from .cutting import cut

    __all__ = ["cut"]

    load_lazily(__name__, {"cutting": ["cut"]})     # what runs: `package.cut` imports package/cutting.py

A public name hides a module of the same name: `partita.graph.gradients` is the function, also after the package
`partita.graph.gradients` has been imported.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from types import ModuleType

from .collector import collector_paused


class LazyPackage(ModuleType):
    """A package that imports the module of a public name at the first access."""

    module_by_name: dict[str, str]

    def __getattr__(self, name: str) -> object:
        module = self.__dict__.get("module_by_name", {}).get(name)
        if module is None:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}", name=name, obj=self)
        with collector_paused():  # classes and functions stay for good: a third of the time of importing sessions
            value = getattr(import_module(f".{module}", self.__name__), name)
        self.__dict__[name] = value
        return value

    def __setattr__(self, name: str, value: object) -> None:
        # The import system sets every module it loads as an attribute of its package; that must not hide a public name.
        if not (isinstance(value, ModuleType) and name in self.module_by_name):
            super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self.module_by_name})


def load_lazily(package: str, names: Mapping[str, Sequence[str]]) -> None:
    """Makes a package import its public names on first use; `names` maps modules of the package to their names.

    The package's `__init__` calls this with its own `__name__`, imports the same names under TYPE_CHECKING, and lists
    them in `__all__`.
    """
    module = sys.modules[package]
    module.__dict__["module_by_name"] = {name: module_name for module_name, listed in names.items() for name in listed}
    module.__class__ = LazyPackage
