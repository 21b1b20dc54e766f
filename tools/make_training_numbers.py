"""Fits the numbers of training to a folder of measured steps, and writes `scenarios/planners/training_numbers.toml`.

    python tools/make_training_numbers.py DATA_DIR

DATA_DIR has the llm_training_*.csv and llm_models.csv. The tables of the Megatron papers are not among what is fitted.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from partita.scenarios.planners.measured.training_answers import fitted_numbers
from partita.scenarios.planners.measured.training_sets import learned_lines

FILE = Path(__file__).parents[1] / "scenarios" / "planners" / "training_numbers.toml"
HEADER = """\
# What steps of training reach of the datasheet, by model of GPU and in common (`numbers.PlanNumbers`). Fitted to
# {rows} measured steps: vTrain's A100s (VIA-Research/vTrain, MIT) and SimuMax's B200s (MooreThreads/SimuMax 4dcaae5,
# Apache-2.0), by tools/make_training_numbers.py.
"""


def main() -> None:
    """Writes the file and prints it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    sources = learned_lines(parser.parse_args().folder)
    numbers = fitted_numbers(sources)
    lines = [HEADER.format(rows=sum(len(lines.rows()) for lines in sources))]
    for name, of in (*numbers.by_device.items(), ("common", numbers.common)):
        lines.append(f"\n[{name}]\n")
        lines += [f"{field} = {value:.5g}\n" for field, value in of._asdict().items()]
    FILE.write_text("".join(lines), "utf-8", newline="\n")
    print(FILE.read_text("utf-8"))


if __name__ == "__main__":
    main()
