"""The first simulation of a process of ours: cuts a graph from a file, and prints how long `simulate` took."""

from __future__ import annotations

import json
import sys

from partita.devices import cut, simulate

from .sampling import now


def main(request: str) -> None:
    """Simulates the request."""
    asked = json.loads(request)
    cluster, feeds = f"cpu:{asked['devices']}", list(asked["feeds"])
    partitions = cut(asked["file"], cluster, feeds=feeds, fetches=asked["fetches"], targets=asked["targets"])
    before = now()
    simulate(partitions, cluster)
    taken = now() - before
    print(json.dumps([taken.wall_s, taken.cpu_s]))


if __name__ == "__main__":
    main(sys.argv[1])
