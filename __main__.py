"""`python -m partita`: the command line."""

from __future__ import annotations

from .scenarios.cli import main

if __name__ == "__main__":
    main()
