"""What commands write of a step for others to look at: traces and pages, and the command that makes pages of files."""

from __future__ import annotations
