"""Makes `docs/config.md`: what sessions do with every field of ConfigProto and RunOptions.

The page is made from the table in `actors/sessions/options/config_fields.py`; `tests/test_generated_pages.py` compares
it with the committed page.

    python tools/make_config_table.py
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from partita.actors.sessions.options.config_fields import CONFIG_FIELDS, EXPANDED, RUN_FIELDS, ConfigField, Treatment
from partita.graph import ConfigProto, RunOptions
from partita.graph.message_fields import declared_fields

TARGET = Path(__file__).parent.parent / "docs" / "config.md"
HEAD = """# Settings of sessions and steps

Made by `tools/make_config_table.py` from `actors/sessions/options/config_fields.py`; do not edit.

`open_session`, `open_saved_model`, `BlockingSession` and `open_cluster_session` take a `ConfigProto`, and steps take
`RunOptions`: TensorFlow's messages, or those of `partita.graph.protos`. Every field is one of

- *honoured*: it does what it does in TensorFlow 2.21;
- *ignored*: it changes neither the values of a step nor where its nodes run;
- *refused*: it would change values or placement, and Partita cannot do it: InvalidArgumentError names the field.

A field that the messages do not declare, such as one of a later TensorFlow, is refused too, by its number. Where
sessions over several tasks (`open_cluster_session`) do something else, as TensorFlow's do, the row says so.
`open_session` opens a local session even if its cluster has several tasks.
"""


def _cell(treatment: Treatment, note: str, field: ConfigField) -> str:
    where = f", where there are {field.kind}s" if field.kind and treatment is Treatment.REFUSED else ""
    return f"*{treatment.value}{where}*: {note}" if note else f"*{treatment.value}*"


def rows(paths: Iterable[str], fields: Mapping[str, ConfigField]) -> Iterator[str]:
    """The rows of the table of one message."""
    for path in paths:
        field = fields[path]
        text = _cell(field.treatment, field.note, field)
        if field.tasks is not None:
            text += f". On several tasks {_cell(field.tasks, field.tasks_note.rstrip('.'), field)}"
        yield f"| `{path}` | {text} |"


def page() -> str:
    """The page."""
    lines = [HEAD]
    for message, fields in ((ConfigProto, CONFIG_FIELDS), (RunOptions, RUN_FIELDS)):
        lines += [f"## {message.__name__}\n", "| field | what a session does with it |", "|---|---|"]
        lines += [*rows(declared_fields(message, EXPANDED), fields), ""]
    return "\n".join(lines)


if __name__ == "__main__":
    TARGET.write_text(page())
