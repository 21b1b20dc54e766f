"""`partita sweep`, and the executors that it and `partita plan` open."""

from __future__ import annotations
