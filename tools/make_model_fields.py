"""Makes `docs/model_fields.md`: what each family of models does with the fields of a Hugging Face config.json.

`tests/test_generated_pages.py` compares the page with the committed one.

    python tools/make_model_fields.py
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from partita.scenarios.models.families import RULES
from partita.scenarios.models.fields import LEFT_OUT, SAME, WITHOUT_EFFECT, ConfigRules

TARGET = Path(__file__).parent.parent / "docs" / "model_fields.md"
HEAD = """# Fields of config.json

Made by `tools/make_model_fields.py`; do not edit. [models.md](models.md) says how a file becomes a model. A field that
is not here is refused by name, unless it is null.

- **read**: a size or a setting; a value behind `=` is taken when the field is missing, as transformers does; the others
  must be there.
- **one value**: any other value changes the mathematics, and is refused.
- **left out**: accepted, and the model does without; `left_out` of the model says so, and so does the command line.
- **without effect** on the mathematics: not read.
- **heads**: the `architectures` that are built; others are refused.
"""


def page() -> str:
    """The page."""
    families = [(family, rules) for family, of_family in RULES for rules in of_family]
    parts = [HEAD, _section("Of every family", _common())]
    parts += [_section(f"{rules.model_type}: {family.__name__}", _rows(rules)) for family, rules in families]
    return "\n".join(parts)


def _section(title: str, rows: Mapping[str, str]) -> str:
    lines = [f"| {what} | {fields} |" for what, fields in rows.items() if fields]
    return "\n".join([f"## {title}", "", "| | |", "|---|---|", *lines, ""])


def _common() -> dict[str, str]:
    return {"one value": _values(SAME), "left out": _named(LEFT_OUT), "without effect": _named(sorted(WITHOUT_EFFECT))}


def _rows(rules: ConfigRules) -> dict[str, str]:
    defaults = {name: value for name, value in rules.defaults.items() if name not in rules.sizes}
    read = [*map(_code, rules.sizes), *(f"`{name}={json.dumps(value)}`" for name, value in defaults.items())]
    return {
        "read": ", ".join(read),
        "one value": _values(rules.same),
        "left out": _named(rules.left_out),
        "without effect": _named(sorted(rules.without_effect)),
        "heads": _named(rules.architectures),
    }


def _named(names: Iterable[str]) -> str:
    return ", ".join(map(_code, names))


def _code(name: str) -> str:
    return f"`{name}`"


def _values(same: Mapping[str, tuple[object, ...]]) -> str:
    return ", ".join(f"`{name}`: {' or '.join(map(json.dumps, values))}" for name, values in same.items())


if __name__ == "__main__":
    TARGET.write_text(page())
