"""Builds script and style of the report page: `built/` from `script/` and `style/`, in `scenarios/report/page/`.

esbuild bundles the modules and uPlot into one script, and the style sheets into one. Both packages come from the npm
registry at the versions and integrity hashes of `tools/page/package-lock.json`; nothing else is asked of the network,
and the same sources give the same bytes. The first line of a built file has the sha256 of the sources it was built
from: `tests/scenarios/report/page/test_built.py` compares it, so a stale build is noticed without node.

    python tools/build_page.py [--check]
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

CHECKOUT = Path(__file__).parent.parent
PACKAGES = CHECKOUT / "tools" / "page"
PAGE = CHECKOUT / "scenarios" / "report" / "page"
BUILT = PAGE / "built"
STYLES = ("uplot/dist/uPlot.min.css", "./style/page.css", "./style/panels.css")
"""the style sheets in the order in which they are read: ours may overrule uPlot's"""
OPTIONS = ("--bundle", "--minify", "--charset=utf8", "--legal-comments=inline")


def sources() -> list[Path]:
    """Everything that the built files depend on: our modules and style sheets, and the lock of the packages."""
    return [*sorted(PAGE.glob("script/*.js")), *sorted(PAGE.glob("style/*.css")), PACKAGES / "package-lock.json"]


def source_hash() -> str:
    """The sha256 over names and contents of the sources, in hexadecimal digits."""
    digest = hashlib.sha256()
    for path in sources():
        content = path.read_bytes()
        digest.update(f"{path.name} {len(content)}\n".encode() + content)
    return digest.hexdigest()


def head() -> str:
    """The first line of both built files."""
    uplot = json.loads((PACKAGES / "package-lock.json").read_text())["packages"]["node_modules/uplot"]["version"]
    return (
        f"/*! Made by tools/build_page.py from sources with sha256 {source_hash()}. "
        f"Holds uPlot {uplot}, (c) Leon Sorokin, MIT licence: LICENCES.txt has its text. */\n"
    )


def install(folder: Path) -> Path:
    """Installs the locked packages below a folder; returns its `node_modules`."""
    for name in ("package.json", "package-lock.json"):
        shutil.copy(PACKAGES / name, folder / name)
    # Their install scripts stay unused: esbuild's program runs as it was packed.
    command = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    return folder / "node_modules"


def bundle(modules: Path, *options: str, entry: str) -> str:
    """What esbuild makes of the source text `entry`, whose imports are those of our folder and of the packages."""
    program = modules / ".bin" / "esbuild"
    environment = {**os.environ, "NODE_PATH": str(modules)}
    command = [str(program), *OPTIONS, *options]
    done = subprocess.run(
        command, cwd=PAGE, env=environment, input=entry, check=False, stdout=subprocess.PIPE, encoding="utf-8"
    )
    if done.returncode:
        sys.exit(done.returncode)  # esbuild has said what is wrong
    return done.stdout


def built_files() -> dict[str, str]:
    """Name -> content of what lies in `built/`."""
    with tempfile.TemporaryDirectory() as folder:
        modules = install(Path(folder))
        styles = "".join(f'@import "{name}";\n' for name in STYLES)
        licence = (modules / "uplot" / "LICENSE").read_text(encoding="utf-8")
        return {
            "page.js": head() + bundle(modules, "--format=iife", "--target=es2022", entry='import "./script/main.js";'),
            "page.css": head() + bundle(modules, "--loader=css", entry=styles),
            "LICENCES.txt": f"The report page draws its curves with uPlot.\n\n{licence.strip()}\n",
        }


def main() -> int:
    """Writes the built files, or says which differ."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a committed file differs")
    check = parser.parse_args().check
    BUILT.mkdir(exist_ok=True)
    stale = []
    for name, content in built_files().items():
        path = BUILT / name
        if not path.exists() or path.read_text(encoding="utf-8") != content:
            stale.append(name)
            if not check:
                path.write_text(content, encoding="utf-8")
    print(f"{'stale' if check else 'written'}: {', '.join(stale) or 'nothing'}")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
