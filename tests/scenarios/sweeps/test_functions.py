"""Which functions can be swept, and that the hash of a function is of what it does."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from functools import partial, wraps
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest

from partita.errors import InvalidArgumentError
from partita.scenarios import SweepAxes, sweep
from partita.scenarios.sweeps.functions import code_hash, files_named, swept_function
from tests.scenarios.sweeps import swept

SCRIPT = """
from partita.scenarios import SerialExecutor, WorkerProcesses, sweep

def double(x):
    return 2 * x

if __name__ == "__main__":
    with WorkerProcesses(1) as executor:
        print(sweep(double, {"x": [1, 2]}, executor=executor).column("value"))
"""
SETS = "def f(x):\n    return x in {'a', 'bc', 'def', 'ghi', 3, None}\n"


def compiled(source: str, name: str = "f", line: int = 1) -> FunctionType:
    """A function of a text that begins at some line of some file."""
    names: dict[str, Any] = {"__name__": "drawn"}
    exec(compile("\n" * line + source, f"file{line}.py", "exec"), names)
    function: FunctionType = names[name]
    return function


BASE = "def f(x, y=1):\n    '''Says.'''\n    z = x + 2\n    return [z * k for k in (1, 2)]\n"


def test_lines_and_comments_do_not_count() -> None:
    """Nor the file."""
    moved = BASE.replace("    z =", "\n    # a comment\n    z =")
    assert code_hash(compiled(BASE)) == code_hash(compiled(BASE, line=40)) == code_hash(compiled(moved, line=7))


@pytest.mark.parametrize(
    ("old", "new"),
    [("+ 2", "+ 3"), ("+ 2", "- 2"), ("(1, 2)", "(1, 4)"), ("y=1", "y=2"), ("z * k", "k * z"), ("y=1", "y=1.0")],
)
def test_what_it_does_counts(old: str, new: str) -> None:
    """Constants, also those of functions inside it, operators, and defaults."""
    assert code_hash(compiled(BASE)) != code_hash(compiled(BASE.replace(old, new)))


@pytest.mark.parametrize("seed", ["1", "2"])
def test_the_hash_is_the_same_in_every_process(seed: str) -> None:
    """The order of a set changes from process to process."""
    program = (
        "import sys; sys.path[:0] = eval(sys.argv[1])\n"
        "from tests.scenarios.sweeps.test_functions import SETS, code_hash, compiled\n"
        "print(code_hash(compiled(SETS)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, repr(sys.path)],
        env={"PYTHONHASHSEED": seed, "PATH": ""},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == code_hash(compiled(SETS))


def test_a_wrapped_function_counts() -> None:
    """A decorator does not hide it."""

    def decorated(function: Callable[..., object]) -> Callable[..., object]:
        @wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> object:  # Any: whatever the function takes
            return function(*args, **kwargs)

        return wrapper

    first, second = decorated(compiled(BASE)), decorated(compiled(BASE.replace("+ 2", "+ 3")))
    assert code_hash(first) != code_hash(second)


def test_a_function_of_a_module_can_be_swept() -> None:
    """Its name says where other processes find it."""
    function = swept_function(swept.total)
    assert (function.name, function.call) == ("tests.scenarios.sweeps.swept.total", swept.total)


def test_what_cannot_be_imported_is_refused() -> None:
    """In one sentence that says what to do."""

    def inner(a: int) -> int:
        return a

    refused: list[Callable[..., object]] = [lambda a: a, inner, partial(swept.total, b=1), [].append]
    for function in refused:
        with pytest.raises(InvalidArgumentError, match="define it with `def` at the top of a module"):
            sweep(function, {"a": [1]})


def test_a_function_of_a_prompt_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """No other process has it."""
    main = sys.modules["__main__"]
    monkeypatch.setattr(main, "typed", compiled(BASE.replace("def f", "def typed"), "typed"), raising=False)
    monkeypatch.setattr(main.typed, "__module__", "__main__")
    monkeypatch.setattr(main, "__spec__", None)
    monkeypatch.setattr(main, "__file__", None, raising=False)
    with pytest.raises(InvalidArgumentError, match="was defined at a prompt"):
        swept_function(main.typed)


@pytest.mark.parametrize("is_guarded", [True, False])
def test_a_function_of_a_script_can_be_swept(is_guarded: bool, tmp_path: Path) -> None:
    """If its calls are where workers do not come to them; else the error says where to put them."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT if is_guarded else SCRIPT.replace('if __name__ == "__main__":', "if True:"))
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False, timeout=60)
    if is_guarded:
        assert (done.stdout, done.stderr) == ("[2, 4]\n", "")
    else:
        assert done.returncode != 0
        assert 'below `if __name__ == "__main__":`' in done.stderr


def test_files_of_a_point_are_paths_and_texts_that_name_one(tmp_path: Path) -> None:
    """A text that is none, a number and a folder as a text are values alone."""
    file = tmp_path / "f"
    file.touch()
    point = next(SweepAxes({"a": [tmp_path], "b": [str(file)], "c": ["x"], "d": [str(tmp_path)], "e": [3]}).points())
    assert list(files_named(point)) == [tmp_path, file]
    assert list(files_named({"a": ("x", str(file)), "b": "x" * 9999, "c": "\0"})) == [file]
