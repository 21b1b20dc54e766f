"""Makes `graph/ops/kernel_facts.json.gz` from dumps of TensorFlow's kernel registry.

The input is a folder with, for cpu and gpu, `*_kernels_of_used_ops.json` (every kernel of some ops) and
`*_host_memory_args.json` (of all ops, the kernels with arguments in host memory). The output is one file of facts per
device type and op. Kernels that differ only in the allowed values of a single attr become one entry.

    python tools/make_kernel_facts.py FOLDER
"""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path

from partita.graph.dtypes import parse_dtype

TARGET = Path(__file__).parent.parent / "graph" / "ops" / "kernel_facts.json.gz"
Constraint = dict[str, frozenset[str]]
Entry = tuple[Constraint, frozenset[str]]


def read(path: Path) -> dict[str, list[dict]]:
    """Kernels by op; some files wrap them in a field called "ops"."""
    content = json.loads(path.read_text())
    return content.get("ops", content)


def merged(entries: list[Entry]) -> list[Entry]:
    """Joins entries that agree in host arguments and in all constraints but one."""
    for i, (constraint, host) in enumerate(entries):
        for j in range(i):
            other, other_host = entries[j]
            if host != other_host or constraint.keys() != other.keys():
                continue
            differing = [attr for attr in constraint if constraint[attr] != other[attr]]
            if len(differing) <= 1:
                joined = {attr: values | other[attr] for attr, values in constraint.items()}
                return merged([*entries[:j], (joined, host), *entries[j + 1 : i], *entries[i + 1 :]])
    return entries


def facts_of(kernels: list[dict]) -> list[list]:
    """Entries in the order they are tried: kernels of the device before default ones, higher priority first.

    An entry is [is_default, priority, label, constraints, host arguments].
    """
    groups: dict[tuple[bool, int, str], list[Entry]] = {}
    for kernel in kernels:
        key = (kernel["device_type"] == "DEFAULT", -kernel.get("priority", 0), kernel.get("label", ""))
        # The dumps lack the values of constraints on strings (a data format), so these are left out.
        constraint = {attr: frozenset(values) for attr, values in kernel["constraint"].items() if values}
        groups.setdefault(key, []).append((constraint, frozenset(kernel["host_memory_arg"])))
    return [
        [int(is_default), -priority, label, encode(constraint), sorted(host)]
        for (is_default, priority, label), entries in sorted(groups.items())
        for constraint, host in merged(entries)
    ]


def encode(constraint: Constraint) -> dict[str, list[int]]:
    """A constraint as JSON: numbers of types, sorted."""
    return {attr: sorted(int(parse_dtype(value)) for value in values) for attr, values in sorted(constraint.items())}


def main(folder: Path) -> None:
    """Writes the file."""
    complete = {kind: read(folder / f"{kind.lower()}_kernels_of_used_ops.json") for kind in ("CPU", "GPU")}
    partial = {kind: read(folder / f"{kind.lower()}_host_memory_args.json") for kind in ("CPU", "GPU")}
    facts = {
        kind: {op: facts_of(kernels) for op, kernels in sorted((partial[kind] | complete[kind]).items())}
        for kind in complete
    }
    result = {"complete": sorted(complete["CPU"] | complete["GPU"]), "kernels": facts}
    text = json.dumps(result, separators=(",", ":"))
    TARGET.write_bytes(gzip.compress(text.encode(), mtime=0))
    print(f"{TARGET.name}: {sum(map(len, facts.values()))} ops, {len(text)} characters, {TARGET.stat().st_size} bytes")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
