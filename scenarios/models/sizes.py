"""A model from its sizes alone, as texts and flags give them, where there is no config.json.

    read_model(LlamaModel, "layers=32,hidden=4096,heads=32,kv_heads=8,intermediate=14336,vocabulary=128256")
    read_model(LlamaModel, "config.json")            the model of that file

Sizes are the whole numbers among the fields of a family; others, such as rotary positions, have their defaults.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields
from pathlib import Path

from ...errors import InvalidArgumentError
from ...graph.suggestions import suggestion
from .description import ModelDescription


def sizes_of(family: type[ModelDescription]) -> dict[str, bool]:
    """The names of a family's sizes, and whether a model needs them."""
    found = fields(family)  # type: ignore[arg-type]  # families are dataclasses
    return {it.name: it.default is MISSING for it in found if it.type in (int, "int")}


def model_of_sizes(family: type[ModelDescription], sizes: Mapping[str, int]) -> ModelDescription:
    """The model of sizes by name.

    Raises InvalidArgumentError for one that the family does not have, with the nearest name, for those that are
    missing, and as the class does.
    """
    known = sizes_of(family)
    for name in sizes:
        if name not in known:
            raise InvalidArgumentError(f"{family.__name__} has no size {name!r}{suggestion(name, known)}")
    missing = [name for name, needed in known.items() if needed and name not in sizes]
    if missing:
        raise InvalidArgumentError(f"{family.__name__}: {', '.join(missing)} must be given")
    return family(**sizes)


def read_model(family: type[ModelDescription], text: str) -> ModelDescription:
    """The model of the path of a config.json, or of a list of sizes; raises as `from_config` or `model_of_sizes`."""
    if text.partition("=")[0].strip() not in sizes_of(family) or Path(text).exists():
        return family.from_config(text)
    sizes: dict[str, int] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, _, value = (piece.strip() for piece in part.partition("="))
        if not value.isdecimal():
            raise InvalidArgumentError(f"{family.__name__}: {name}={value!r} is no whole number; give one")
        sizes[name] = int(value)
    return model_of_sizes(family, sizes)


def sizes_text(model: ModelDescription) -> str:
    """The list of sizes that `read_model` reads; those that are defaults of the family are left out."""
    usual = {it.name: it.default for it in fields(model)}  # type: ignore[arg-type]  # families are dataclasses
    given = {name: getattr(model, name) for name in sizes_of(type(model))}
    return ",".join(f"{name}={size}" for name, size in given.items() if size != usual[name])
