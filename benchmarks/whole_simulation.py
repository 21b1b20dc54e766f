"""A whole process of ours: reads a graph and a cluster from files, simulates one step, and prints its peak memory."""

from __future__ import annotations

import json
import sys

from partita.devices import cut, simulate

from .memory import peak_bytes


def main(request: str) -> None:
    """Simulates the request."""
    asked = json.loads(request)
    cluster, feeds = asked["cluster"], list(asked["feeds"])
    simulate(cut(asked["file"], cluster, feeds=feeds, fetches=asked["fetches"], targets=asked["targets"]), cluster)
    print(peak_bytes())


if __name__ == "__main__":
    main(sys.argv[1])
