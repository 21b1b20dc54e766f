"""Fits the numbers of serving frameworks to a folder of measurements, and writes `scenarios/serving/frameworks.toml`.

    python tools/make_serving_numbers.py DATA_DIR [--date YYYY-MM-DD]

DATA_DIR has llm_serving.csv and llm_serving_models.csv.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from partita.devices.calibration.toml_text import toml_text
from partita.scenarios.serving.serving_set import LLM_SERVING, numbers_of_frameworks

FILE = Path(__file__).parents[1] / "scenarios" / "serving" / "frameworks.toml"
SOURCE = "llm_serving.csv: ai-dynamo/aiconfigurator 095f58a5 (Apache-2.0)"


def main() -> None:
    """Writes the file and prints it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--date", default="2026-11-29")
    arguments = parser.parse_args()
    rows = LLM_SERVING.read(LLM_SERVING.paths(arguments.folder), False)
    table = {
        framework: {
            name: {"value": value, "source": SOURCE, "date": arguments.date}
            for name, value in numbers._asdict().items()
        }
        for framework, numbers in numbers_of_frameworks(rows).items()
    }
    FILE.write_text(toml_text(table), "utf-8", newline="\n")
    print(FILE.read_text("utf-8"))


if __name__ == "__main__":
    main()
