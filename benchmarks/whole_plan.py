"""A process of ours: the first search of a plan, all splits of a GPT on A100s; prints how long `search` took."""

from __future__ import annotations

import json
import sys

from partita.devices import machines_of
from partita.scenarios import GptModel
from partita.scenarios.planners import search

from .sampling import now


def main(request: str) -> None:
    """`model` are the sizes of a GPT, `gpus` and `batch` say on how many and how many sequences a step has."""
    asked = json.loads(request)
    model, machines = GptModel(**asked["model"]), machines_of(f"A100-80GB:{asked['gpus']}")
    before = now()
    plan = search(model, machines, global_batch=asked["batch"])
    taken = now() - before
    if not plan.plans:
        raise ValueError("nothing fits")
    print(json.dumps({"sample": [taken.wall_s, taken.cpu_s], "configurations": plan.possible}))


if __name__ == "__main__":
    main(sys.argv[1])
