"""A table of one kind of attachment to ops: shape functions, gradients, kernels or costs.

Modules of the families register entries, and so can users. Looking up an op imports modules of its family only, so that
inferring the shape of a matrix product does not import string kernels: first those that have its name in their text,
and if none of these registers it, the others. Iterating imports all families.

    table: OpTable[ShapeFunction] = OpTable("a shape function", "partita.graph.ops", "_shapes", via=__name__)
    table.get("ConcatV2")    imports partita.graph.ops.arrays.slicing_shapes, which has "ConcatV2" in it
    table.get("NoOp")        has no entry: imports the modules partita.graph.ops.control.*_shapes
    len(table)               imports those of all families
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, MutableMapping
from functools import cache, lru_cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
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
        self._waiting: dict[str, dict[str, bytes | None]] = {}  # of other families: modules and texts, None if unknown
        self._imported: set[tuple[str, str]] = set()  # families and texts, of which all modules with the text are
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

    def has_looked(self, op: str) -> bool:
        """Whether a look-up of the op imports nothing."""
        return op in self._entries or op in self._absent or record_of(op).family in self._loaded

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
        self._load(record_of(op).family, op)
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

    def load_modules_with(self, text: str, op: str) -> None:
        """Imports all modules of the op's family that have a text: what they register beside entries is there then."""
        family = record_of(op).family
        if family in self._loaded or (family, text) in self._imported:
            return
        waiting, sought = self._modules(family), text.encode()
        for module in [name for name, content in waiting.items() if content is None or sought in content]:
            import_module(module)
            waiting.pop(module, None)
        self._imported.add((family, text))

    def _modules(self, family: str) -> dict[str, bytes | None]:
        """The modules of a family that are not imported yet, with their texts."""
        if family not in self._waiting:
            self._waiting[family] = _texts(f"{self._package}.{family}", self._ending)
        return self._waiting[family]

    def _load(self, family: str, op: str = "") -> None:
        """Imports the modules of a family once, with `op` only until one of them has registered that op.

        An import that raised is repeated at the next look-up.
        """
        if family in self._loaded:
            return
        waiting, quoted = self._modules(family), f'"{op}"'.encode()
        for module in sorted(waiting, key=lambda name: quoted not in (waiting.get(name) or b"")):
            if op in self._entries:
                return
            import_module(module)
            waiting.pop(module, None)
        self._loaded.add(family)
        self._waiting.pop(family, None)

    def _registering_module(self) -> str:
        """The module that registers: the innermost caller that is neither this module nor `via`."""
        frame = sys._getframe(1)
        while frame.f_back is not None and frame.f_globals.get("__name__") in self._via:
            frame = frame.f_back
        return str(frame.f_globals.get("__name__"))


def _texts(package: str, ending: str) -> dict[str, bytes | None]:
    """The modules of a package whose names end in `ending`, and their texts; None where the text is not there."""
    return {f"{package}.{file.stem}": _text(file) for file in _files(package) if file.stem.endswith(ending)}


@cache  # eight tables have entries in the modules of costs
def _files(package: str) -> list[Path]:
    spec = find_spec(package)
    folders = (spec.submodule_search_locations if spec is not None else None) or ()
    return [Path(folder, f"{module.name}.py") for folder in folders for module in iter_modules([folder])]


@lru_cache(32)
def _text(file: Path) -> bytes | None:
    return file.read_bytes() if file.is_file() else None
