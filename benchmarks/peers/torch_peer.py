"""torch.fx: its interpreter on a chain of nodes: each adds the value before and the fed scalar; no gradients."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from operator import add
from typing import Any

from benchmarks.peers.serving import Seconds, serve, timed

# Imported by name, as type checkers may have no torch to look into.
torch: Any = import_module("torch")
fx: Any = import_module("torch.fx")

_started: list[Any] = []


def start(nodes: int) -> None:
    """Builds the chain and runs it once."""
    graph = fx.Graph()
    x = last = graph.placeholder("x")
    for _ in range(nodes):
        last = graph.call_function(add, (last, x))
    graph.output(last)
    torch.set_grad_enabled(False)
    interpreter = fx.Interpreter(fx.GraphModule(torch.nn.Module(), graph))
    _started[:] = [partial(interpreter.run, torch.tensor(0.5))]
    _started[0]()


def steps(count: int) -> Seconds:
    """Time of some steps."""
    return timed(_started[0], count)


if __name__ == "__main__":
    serve({"start": start, "steps": steps})
