"""A table of one kind of attachment to ops: shape functions, gradients, kernels or costs.

Modules of the families register entries, and so can users. Looking up an op imports the modules of its family only, so
that inferring the shape of a matrix product does not import string kernels; iterating imports all families.

    table: OpTable[ShapeFunction] = OpTable("a shape function", "partita.graph.ops", "_shapes", via=__name__)
    table.get("MatMul")    imports the modules partita.graph.ops.linalg.*_shapes and returns what they registered
    len(table)             imports those of all families
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, MutableMapping
from importlib import import_module
from importlib.util import find_spec
from pkgutil import iter_modules
from typing import TypeVar

from ...errors import AlreadyExistsError
from .record import family_names, record_of

T = TypeVar("T")

FAMILIES = __name__.removesuffix(".op_table")
"""the package whose folders are the families of shape functions and gradients"""

_PACKAGE = __name__.removesuffix("graph.ops.op_table")


class OpTable(MutableMapping[str, T]):
    """Entries by op. `add` refuses to replace an entry; assigning an item, as tests do, replaces it."""

    def __init__(self, what: str, package: str, ending: str = "", *, via: str) -> None:
        """Entries are registered by the modules in the family folders of `package` whose names end in `ending`.

        They call functions of the module `via`, which call `add`. `what` names an entry in error messages.
        """
        self.what = what
        self._via = {__name__, via}
        self._package = package
        self._ending = ending
        self._loaded = {""}  # "" is the family of ops without one
        self._entries: dict[str, T] = {}
        self._absent: set[str] = set()  # ops without an entry that were asked for: most are, again and again
        self._origins: dict[str, tuple[T, str]] = {}

    def add(self, op: str, entry: T) -> None:
        """Registers the entry of an op; AlreadyExistsError if the op has one."""
        origin = self._registering_module()
        if not origin.startswith(_PACKAGE):
            self._load(record_of(op).family)  # entries of this package go first
        if op in self._entries:
            raise AlreadyExistsError(f"op {op!r} has {self.what} already; remove one of the two", op=op)
        self._set(op, entry)
        self._origins[op] = entry, origin

    def origin(self, op: str) -> str | None:
        """The module that registered the entry of an op; None if it was assigned or there is none."""
        if op not in self:  # which imports the family of the op
            return None
        entry, origin = self._origins.get(op, (None, None))
        return origin if self._entries[op] is entry else None

    def is_built_in(self, op: str) -> bool:
        """Whether a module of this package registered the entry of an op."""
        return (self.origin(op) or "").startswith(_PACKAGE)

    def load_all(self) -> None:
        """Imports the modules of all families."""
        for family in family_names():
            self._load(family)

    def __getitem__(self, op: str) -> T:
        if op in self._entries:  # asked for again and again
            return self._entries[op]
        if op not in self:  # which imports the family of the op
            raise KeyError(op)
        return self._entries[op]

    def __contains__(self, op: object) -> bool:
        if op in self._entries:
            return True
        if op in self._absent or not isinstance(op, str):
            return False
        self._load(record_of(op).family)
        if op not in self._entries:
            self._absent.add(op)
        return op in self._entries

    def __setitem__(self, op: str, entry: T) -> None:
        self._load(record_of(op).family)
        self._set(op, entry)

    def _set(self, op: str, entry: T) -> None:
        self._entries[op] = entry
        self._absent.discard(op)

    def __delitem__(self, op: str) -> None:
        del self._entries[op]

    def __iter__(self) -> Iterator[str]:
        self.load_all()
        return iter(self._entries)

    def __len__(self) -> int:
        self.load_all()
        return len(self._entries)

    def _load(self, family: str) -> None:
        """Imports the modules of a family once; an import that raised is repeated at the next look-up."""
        if family in self._loaded:
            return
        package = f"{self._package}.{family}"
        spec = find_spec(package)
        for module in iter_modules(spec.submodule_search_locations if spec is not None else ()):
            if module.name.endswith(self._ending):
                import_module(f"{package}.{module.name}")
        self._loaded.add(family)

    def _registering_module(self) -> str:
        """The module that registers: the innermost caller that is neither this module nor `via`."""
        frame = sys._getframe(1)
        while frame.f_back is not None and frame.f_globals.get("__name__") in self._via:
            frame = frame.f_back
        return str(frame.f_globals.get("__name__"))
