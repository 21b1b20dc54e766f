"""A process that measures one row, and prints its figure by both clocks."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import trio

from .__main__ import CASES
from .bench import Bench, Sizes
from .bench_surroundings import FRESH
from .peers.process import Peers


def main(key: str, sizes: str, surroundings: str) -> None:
    """`sizes` are those of the benchmark as JSON; of a fresh process modules are measured, too."""
    fields = {name: tuple(size) if isinstance(size, list) else size for name, size in json.loads(sizes).items()}
    (case,) = [case for case in CASES if case.key == key]
    with TemporaryDirectory() as folder:
        bench = Bench(Sizes(**fields), Peers(), Path(folder), cold=surroundings == FRESH)
        ours = trio.run(case.measure, bench).ours
    print(json.dumps([ours.value, ours.cpu]))


if __name__ == "__main__":
    main(*sys.argv[1:])
