"""The build backend: setuptools, whose builds start empty.

pip builds in the checkout, and setuptools adds to what an earlier build has left in `build/`. A module that has moved
since would be installed at its old place too, and be imported with its family of ops.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from setuptools import build_meta
from setuptools.build_meta import *  # noqa: F403  # the other hooks are setuptools' own


def build_wheel(
    wheel_directory: str, config_settings: dict[str, object] | None = None, metadata_directory: str | None = None
) -> str:
    """As setuptools does, in folders that hold nothing yet."""
    for leftover in [Path("build/lib"), *Path("build").glob("bdist.*")]:
        if leftover.exists():
            shutil.rmtree(leftover)
    return str(build_meta.build_wheel(wheel_directory, config_settings, metadata_directory))
