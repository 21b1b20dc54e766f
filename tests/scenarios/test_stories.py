"""Every shipped story prints the file beside it, and the list of stories is complete."""

from __future__ import annotations

from pathlib import Path

import pytest

from partita.scenarios.stories.catalog import STORIES, tell
from tests.scenarios.command_line import CommandLine, assert_one_clear_line

FOLDER = Path(__file__).parents[2] / "scenarios" / "stories"


@pytest.mark.parametrize("name", STORIES)
def test_a_story_prints_what_is_committed(name: str) -> None:
    """To accept a change: `python -m partita.scenarios.stories.NAME > scenarios/stories/NAME.txt`."""
    assert "\n".join(tell(name)) + "\n" == (FOLDER / f"{name}.txt").read_text("utf-8")


def test_every_expected_output_belongs_to_a_story() -> None:
    """No story is without a test, and none is without a script to read."""
    assert sorted(path.stem for path in FOLDER.glob("*.txt")) == sorted(STORIES)
    assert [name for name in STORIES if not (FOLDER / f"{name}.py").is_file()] == []


def test_the_command_line_lists_and_tells_stories(partita: CommandLine) -> None:
    """`partita scenario` lists them, `partita scenario NAME` runs one."""
    assert [line.split()[0] for line in partita.done("scenario").splitlines()] == list(STORIES)
    printed = partita.done("scenario", "all_to_one")
    assert printed == (FOLDER / "all_to_one.txt").read_text("utf-8")


def test_an_unknown_story_is_wrong_usage(partita: CommandLine) -> None:
    """Exit code 2, and the names that exist."""
    assert_one_clear_line(partita("scenario", "war_and_peace"), 2, "war_and_peace", "all_to_one")


def test_no_story_of_another_name_is_told() -> None:
    """Only listed stories are imported."""
    with pytest.raises(KeyError):
        tell("cli")
