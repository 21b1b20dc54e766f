"""Prints what a value costs that crosses between two processes in memory, without connection and encoding.

python -m tests.rendezvous.exchange_cost
"""

from __future__ import annotations

from statistics import median
from time import perf_counter_ns

import numpy as np

from partita.rendezvous import LocalRendezvous
from partita.rendezvous.exchange import TensorExchange
from partita.rendezvous.key import frame_text, stem
from tests.rendezvous.processes import Processes

KEYS, ROUNDS = 1000, 200


def main() -> None:
    """The whole way of `KEYS` values, asked for before they are sent and after, and that within one process."""
    source = "/job:worker/replica:0/task:0/device:CPU:0"
    target = "/job:worker/replica:0/task:1/device:CPU:0"
    keys = [stem(source, 1, target, f"edge_{number}_x") + frame_text(0, 0) for number in range(KEYS)]
    processes = Processes(2, budget_bytes=64 << 20)
    hosts = {source: processes[1].exchanges[0]}

    def route(key: str) -> TensorExchange | None:
        return hosts.get(key[: key.index(";")])

    value = np.zeros(4)
    received: list[object] = []
    cost: dict[str, list[float]] = {"asked first": [], "sent first": [], "one process": []}
    for step in range(ROUNDS):
        for case, costs in cost.items():
            sender = processes[0].begin(step, step)
            receiver = processes[1].steps.begin(step, step, route)
            local = LocalRendezvous()
            here, there = (local, local) if case == "one process" else (sender, receiver)
            begin = perf_counter_ns()
            if case == "sent first":
                for key in keys:
                    here.send(key, value)
            there.expect(keys, lambda _, outcome: received.append(outcome))
            processes.settle()
            if case != "sent first":
                for key in keys:
                    here.send(key, value)
            processes.settle()
            costs.append((perf_counter_ns() - begin) / KEYS / 1000)
            assert len(received) == KEYS
            received.clear()
    for case, costs in cost.items():
        print(f"{case:12} {median(costs):5.2f} us a value (lowest {min(costs):.2f})")


if __name__ == "__main__":
    main()
