"""Kills a program that saves one checkpoint again and again, and counts the states that the kills leave.

It prints how many kills left the old state, how many the new one, and how many neither. The moments of the kills are
uniform over the time of a save. A save that was reported as done is the old state from then on, so going back behind it
counts as a loss.

    python tools/kill_saves.py                  1,000 kills of saves over one prefix
    python tools/kill_saves.py --merge          of saves of two parts that are merged over one prefix
    python tools/kill_saves.py --tensorflow     each state is read by TensorFlow as well, which has to be installed

Ends with exit code 1 if a kill lost anything, or if files are left over after one more save.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import struct
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np

from partita.errors import PartitaError
from partita.graph.formats.bundle_merge import merge_bundles
from partita.graph.formats.bundle_reader import BundleReader
from partita.graph.formats.bundle_writer import BundleWriter

NUMBER = struct.Struct("q")
TENSORS = 8


def tensors(version: int, megabytes: float) -> dict[str, np.ndarray]:
    """The tensors of a version: its number in every element, in sizes that change with it."""
    size = int(megabytes * 2**20 / 8 / TENSORS) + version % 5
    return {f"t{number}": np.full(size + number, version, np.int64) for number in range(TENSORS)}


def save(prefix: str, version: int, megabytes: float) -> None:
    """Saves one version."""
    with BundleWriter(prefix) as writer:
        for name, value in tensors(version, megabytes).items():
            writer.add(name, value)


def save_and_merge(prefix: str, version: int, megabytes: float) -> None:
    """Saves one version as two checkpoints in a folder beside it, and merges them."""
    parts = [f"{prefix}_temp/part-{number}" for number in range(2)]
    values = tensors(version, megabytes)
    for number, part in enumerate(parts):
        with BundleWriter(part) as writer:
            for name in list(values)[number::2]:
                writer.add(name, values[name])
    merge_bundles(parts, prefix, delete_old_directories=True)


def read(prefix: str) -> dict[str, np.ndarray]:
    """All tensors, as Partita reads them."""
    reader = BundleReader(prefix)
    return {name: reader.read(name) for name in reader.names()}


def read_by_tensorflow(prefix: str) -> dict[str, np.ndarray]:
    """All tensors, as TensorFlow reads them."""
    import tensorflow as tf  # not needed unless asked for

    names = [name for name, _ in tf.train.list_variables(prefix)]
    values = tf.raw_ops.RestoreV2(
        prefix=prefix, tensor_names=names, shape_and_slices=[""] * len(names), dtypes=[tf.int64] * len(names)
    )
    return {name: value.numpy() for name, value in zip(names, values, strict=True)}


def state(prefix: str, megabytes: float, readers: list[Callable[[str], dict[str, np.ndarray]]]) -> int | str:
    """The version that all readers read completely; otherwise what is wrong."""
    versions: set[int] = set()
    for reader in readers:
        try:
            values = reader(prefix)
        except PartitaError as error:
            return f"{error.code}: {error.message}"
        except Exception as error:  # noqa: BLE001 - TensorFlow's errors have no base that can be named here
            return f"{type(error).__name__}: {error}"
        version = int(values["t0"][0]) if "t0" in values else -1
        expected = tensors(version, megabytes)
        if values.keys() != expected.keys() or any(not np.array_equal(values[n], expected[n]) for n in expected):
            return f"a mixture of versions, one of them {version}"
        versions.add(version)
    return versions.pop() if len(versions) == 1 else f"several versions: {sorted(versions)}"


def kill_one(save_version: Callable[[int], None], first: int, delay_s: float) -> int:
    """Lets another process save versions from `first` on, and kills it after `delay_s`; the last completed version."""
    receiver, sender = os.pipe()
    child = os.fork()
    if child == 0:
        version = first
        os.write(sender, NUMBER.pack(first - 1))
        while True:
            save_version(version)
            os.write(sender, NUMBER.pack(version))
            version += 1
    os.close(sender)
    received = os.read(receiver, NUMBER.size)
    time.sleep(delay_s)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    while more := os.read(receiver, 1 << 16):
        received += more
    os.close(receiver)
    return NUMBER.unpack(received[-NUMBER.size :])[0]


def main() -> int:
    """Kills, counts, prints."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--megabytes", type=float, default=2.0, help="size of the checkpoint")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--merge", action="store_true", help="save parts and merge them")
    parser.add_argument("--tensorflow", action="store_true", help="let TensorFlow read each state as well")
    options = parser.parse_args()
    write = save_and_merge if options.merge else save
    readers = [read, read_by_tensorflow] if options.tensorflow else [read]
    draw = random.Random(options.seed)
    with tempfile.TemporaryDirectory(prefix="kill_saves") as folder:
        prefix = str(Path(folder) / "ckpt")
        began = time.perf_counter()
        for version in range(5):
            write(prefix, version, options.megabytes)
        save_s = (time.perf_counter() - began) / 5
        done, counts = 4, Counter[str]()
        for _ in range(options.kills):
            done = kill_one(lambda v: write(prefix, v, options.megabytes), done + 1, draw.uniform(0, 3 * save_s))
            outcome = state(prefix, options.megabytes, readers)
            counts["old" if outcome == done else "new" if outcome == done + 1 else "lost"] += 1
            if outcome not in (done, done + 1):
                print(f"after version {done}: {outcome}")
            done = outcome if isinstance(outcome, int) else done
            if outcome not in (done, done + 1):
                write(prefix, done, options.megabytes)
        write(prefix, done + 1, options.megabytes)
        leftovers = [path.name for path in Path(folder).iterdir() if path.is_file()]
        parts = 2 if options.merge else 1
    print(f"{options.kills} kills: {counts['old']} old, {counts['new']} new, {counts['lost']} lost")
    print(f"a save takes {1000 * save_s:.1f} ms; after one more there are {len(leftovers)} files, {parts + 1} needed")
    return 1 if counts["lost"] or len(leftovers) > parts + 1 else 0


if __name__ == "__main__":
    sys.exit(main())
