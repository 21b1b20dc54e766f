"""A whole process of ours: reads a file, runs one request, and prints its peak memory; it imports what a user would
import.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

from partita.actors import BlockingSession

from .memory import peak_bytes


def main(request: str) -> None:
    """Runs the request."""
    asked = json.loads(request)
    feeds = {name: np.full(shape, 0.5, np.float32) for name, shape in asked["feeds"].items()}
    with BlockingSession(Path(asked["file"]).read_bytes(), f"cpu:{asked['devices']}") as session:
        session.run(asked["fetches"], feeds, asked["targets"])
    print(peak_bytes())


if __name__ == "__main__":
    main(sys.argv[1])
