"""Every example of the README and of docs/ runs and prints what the page shows.

A `python` block runs as a program, in a process of its own; a `console` block is a call of `partita`, in another. The
`text` block right after it, or the rest of the console block, is the expected output; "..." stands for lines left out.
A `python` block that begins with the path of a file must be a part of that file. Numbers are compared to three digits,
since the last bits of a sum depend on the machine. The `python` blocks of a tutorial are one program.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from partita.scenarios.cli import main
from partita.scenarios.stories.catalog import STORIES
from tests.fresh import fresh_process

CHECKOUT = Path(__file__).parents[1]
DOCS = CHECKOUT / "docs"
TUTORIALS = sorted((DOCS / "tutorials").glob("*.md"))
PAGES = [CHECKOUT / "README.md", *sorted(DOCS.glob("*.md")), *TUTORIALS, *sorted((DOCS / "how_to").glob("*.md"))]
BLOCK = re.compile(r"^```(python|console)\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"[-+]?\d+\.\d+(?:e[-+]?\d+)?|[-+]?\d+")
LINK = re.compile(r"\]\((?!https?:)([^)#\s]+)(?:#[^)]*)?\)")
OVER_PROCESSES = re.compile(r"\bworkers=|--executor dask")
QUOTED = re.compile(r"# ((?:\w+/)+\w+\.py)\n")


class Block(NamedTuple):
    """Code, and the output that the page shows, if any."""

    code: str
    output: str | None


class Example(NamedTuple):
    """Blocks that are run one after another, each with what those before it have defined."""

    language: str
    blocks: list[Block]


def examples(page: Path) -> Iterator[Example]:
    """What is run of a page, each in a process of its own."""
    program = Example("python", [])
    for language, code, output in BLOCK.findall(page.read_text("utf-8")):
        if language == "console":
            call, printed_by_it = code.removeprefix("$ partita ").split("\n", 1)
            yield Example(language, [Block(call, printed_by_it)])
        elif page in TUTORIALS:
            program.blocks.append(Block(code, output or None))
        elif not QUOTED.match(code):
            yield Example(language, [Block(code, output or None)])
    if program.blocks:
        yield program


EXAMPLES = {
    f"{page.parent.name}/{page.stem}-{k}": example for page in PAGES for k, example in enumerate(examples(page))
}


def printed(example: Example) -> list[str]:
    """Runs an example as from the checkout, in a terminal of 80 columns; returns the output of each block.

    It runs in a folder with links to what the checkout has, so that files which it writes are not left there.
    """
    os.environ["COLUMNS"] = "80"
    warnings.simplefilter("error")
    names: dict[str, object] = {"__name__": "__main__"}
    with tempfile.TemporaryDirectory() as folder:
        for path in CHECKOUT.iterdir():
            (Path(folder) / path.name).symlink_to(path)
        with contextlib.chdir(folder):
            return [printed_by(example.language, block.code, names) for block in example.blocks]


def printed_by(language: str, code: str, names: dict[str, object]) -> str:
    """The output of one block, which may read and define names."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        if language == "python":
            exec(compile(code, "example", "exec"), names)
        else:
            assert main(shlex.split(code)) == 0
    return out.getvalue()


def check_lines(ours: list[str], promised: list[str]) -> None:
    """Equal line by line, numbers to three digits; "..." passes over any number of lines, at the end over the rest."""
    position = 0
    for k, line in enumerate(promised):
        if line != "...":
            assert position < len(ours), f"not printed: {line}"
            check_line(ours[position], line)
            position += 1
        elif k + 1 < len(promised):
            shape = NUMBER.sub("#", promised[k + 1])
            position = next(i for i in range(position, len(ours)) if NUMBER.sub("#", ours[i]) == shape)
        else:
            return
    assert ours[position:] == []


def check_line(ours: str, promised: str) -> None:
    """Equal text, and numbers that agree to three digits."""
    assert NUMBER.sub("#", ours) == NUMBER.sub("#", promised)
    pairs = zip(NUMBER.findall(ours), NUMBER.findall(promised), strict=True)
    for actual, expected in pairs:
        assert float(actual) == pytest.approx(float(expected), rel=1e-3), f"{ours!r} is not {promised!r}"


@pytest.mark.parametrize("example", EXAMPLES.values(), ids=EXAMPLES)
def test_an_example_does_what_the_page_says(example: Example) -> None:
    """For a reader, whose process has run nothing else."""
    if any(OVER_PROCESSES.search(block.code) for block in example.blocks):
        pytest.importorskip("distributed", reason="distributed is not installed: pip install '.[dask]'")
    for block, output in zip(example.blocks, fresh_process(printed, example), strict=True):
        if block.output is not None:
            check_lines([line.rstrip() for line in output.splitlines()], block.output.splitlines())


def test_pages_use_public_names_only() -> None:
    """What an example imports comes from the packages of docs/api.md."""
    public = set(re.findall(r"^## (partita[\w.]*)$", (CHECKOUT / "docs" / "api.md").read_text(), re.MULTILINE))
    imports = [
        (page.name, module)
        for page in PAGES
        for module in re.findall(r"^from (partita[\w.]*) import", page.read_text(), re.MULTILINE)
    ]
    assert imports
    assert [f"{page}: {module}" for page, module in imports if module not in public] == []


def test_quoted_code_is_the_code() -> None:
    """Every quotation on every page is part of the file that it names."""
    quotations = [
        (page.name, *match.groups())
        for page in PAGES
        for match in re.finditer(
            r"^```python\n# ((?:\w+/)+\w+\.py)\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL
        )
    ]
    stale = [f"{page}: {file}" for page, file, code in quotations if code.strip() not in (CHECKOUT / file).read_text()]
    assert quotations
    assert not stale, "\n".join(stale)


def test_named_files_exist() -> None:
    """A path in backticks that begins with a folder of the checkout exists."""
    rooms = "actors|benchmarks|devices|docs|graph|rendezvous|scenarios|tests|tools"
    named = re.compile(rf"`((?:{rooms})/[a-z0-9_/.-]*)`")  # in capitals: a name to fill in
    paths = {
        (page.name, path) for page in [*PAGES, CHECKOUT / "CONTRIBUTING.md"] for path in named.findall(page.read_text())
    }
    missing = [f"{page}: {path}" for page, path in sorted(paths) if not (CHECKOUT / path).exists()]
    assert paths
    assert not missing, "\n".join(missing)


def test_every_story_is_shown() -> None:
    """The page of stories names each, with links to its script and to its output."""
    page = (CHECKOUT / "docs" / "stories.md").read_text()
    assert [name for name in STORIES if f"{name}.py)" not in page or f"{name}.txt)" not in page] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: f"{page.parent.name}/{page.name}")
def test_what_a_page_links_to_is_there(page: Path) -> None:
    """Pages, tests and folders of the checkout; those of decisions keep them true."""
    text = re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    missing = [target for target in LINK.findall(text) if not (page.parent / target).exists()]
    assert missing == []


def test_most_pages_have_links() -> None:
    """A pattern that found none would pass as well."""
    assert sum(len(LINK.findall(page.read_text("utf-8"))) for page in PAGES) >= 90
