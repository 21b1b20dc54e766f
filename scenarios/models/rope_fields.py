"""The rotary positions of a config.json: `rope_theta` with `rope_scaling`, or `rope_parameters`, which holds both."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import cast

from ...errors import InvalidArgumentError
from .fields import ConfigFields
from .rope import Rope, RopeKind

_NAMES = {
    "factor": "factor",
    "low_freq_factor": "low_frequency_factor",
    "high_freq_factor": "high_frequency_factor",
    "original_max_position_embeddings": "original_positions",
    "beta_fast": "beta_fast",
    "beta_slow": "beta_slow",
    "mscale": "mscale",
    "mscale_all_dim": "mscale_all_dim",
    "attention_factor": "attention_factor",
    "truncate": "truncate",
}
_LLAMA3 = ("factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings")
_READ = {
    "default": (),
    "linear": ("factor",),
    "llama3": _LLAMA3,
    "yarn": tuple(name for name in _NAMES if name not in _LLAMA3[1:3]),
}
"""by kind the keys that change its angles"""
_ALWAYS = ("type", "rope_type", "rope_theta", "partial_rotary_factor")

ROPE_FIELDS = ("rope_theta", "rope_scaling", "rope_parameters", "max_position_embeddings")
"""the fields that `read_rope` reads"""


def rope_defaults(theta: float = 10000.0, positions: int = 2048) -> dict[str, object]:
    """What transformers takes for fields that a file lacks."""
    return dict(zip(ROPE_FIELDS, (theta, None, None, positions), strict=True))


def read_rope(fields: ConfigFields) -> Rope:
    """The rotary positions of a file.

    Raises InvalidArgumentError, by name, for a key that its kind does not read, and as `Rope` does.
    """
    name = "rope_scaling" if fields.values["rope_scaling"] else "rope_parameters"
    scaling = fields.values[name] or {}
    if not isinstance(scaling, Mapping):
        raise fields.wrong(name, "an object")
    kind = str(scaling.get("rope_type") or scaling.get("type") or "default")
    read = _READ.get(kind)
    theta = scaling.get("rope_theta") or fields.number("rope_theta")
    if read is None:
        return Rope(theta, cast("RopeKind", kind))  # raises the error that lists the kinds
    if scaling.get("partial_rotary_factor") not in (None, 1, 1.0):
        raise InvalidArgumentError(
            f"{fields.path}: partial_rotary_factor={scaling['partial_rotary_factor']} is not there"
        )
    for key, value in scaling.items():
        if key not in (*read, *_ALWAYS) and value is not None:
            raise InvalidArgumentError(
                f"{fields.path}: {name}: {key}={json.dumps(value)} is not read by rotary positions of kind {kind!r}; "
                "remove it if it has no effect"
            )
    given = {_NAMES[key]: scaling[key] for key in read if scaling.get(key) is not None}
    if "original_max_position_embeddings" in read:
        given.setdefault("original_positions", fields.size("max_position_embeddings"))
    if kind == "yarn":
        given.setdefault("factor", fields.size("max_position_embeddings") / given["original_positions"])
    return Rope(theta, cast("RopeKind", kind), **given)
