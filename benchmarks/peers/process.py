"""Starts the processes of peers, and sends them requests.

A peer is started once, at first use, and ended with its `Peers`. A peer that is not installed is None, not an error.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

from ..fresh import module_flags
from ..sampling import Sample

# By the name of the peer: the library that it needs, and our module that runs in its process.
KNOWN = {
    "tensorflow": ("tensorflow", "tensorflow_peer"),
    "onnx.reference": ("onnx", "onnx_peer"),
    "dask": ("dask", "dask_peer"),
    "torch.fx": ("torch", "torch_peer"),
    "simpy": ("simpy", "simpy_peer"),
}
_FIND = "import importlib.util, sys; print([n for n in sys.argv[1:] if importlib.util.find_spec(n)])"


class PeerError(Exception):
    """A peer failed."""


class Peer:
    """A running peer."""

    def __init__(self, python: str, module: str) -> None:
        """Starts `module`, which must call `serve`, with the interpreter `python`."""
        self.python = python
        self._process = subprocess.Popen(
            [python, *module_flags(module)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def call(self, action: str, **arguments: Any) -> Any:  # any JSON, each way
        """The answer of the peer; PeerError with its traceback when it fails."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"action": action, "arguments": arguments}) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise PeerError(f"{self.python} ended with exit code {self._process.wait()} when asked to {action!r}")
        answer = json.loads(line)
        if "error" in answer:
            raise PeerError(f"{self.python} could not {action!r}:\n{answer['error']}")
        return answer["result"]

    def time(self, action: str, **arguments: Any) -> Sample:  # any JSON
        """The seconds that the peer's own clocks measured for an action."""
        return Sample(*self.call(action, **arguments))

    def close(self) -> None:
        """Ends the process."""
        self._process.communicate()


class Peers:
    """All peers that the given interpreters have; earlier interpreters are preferred, our own is the last."""

    def __init__(self, pythons: Sequence[str] = ()) -> None:
        self.pythons = [*pythons, sys.executable]
        self._found: dict[str, str] | None = None
        self._running: dict[str, Peer] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for peer in self._running.values():
            peer.close()
        self._running.clear()

    @property
    def found(self) -> dict[str, str]:
        """Peer -> its interpreter."""
        if self._found is None:
            self._found = {}
            for python in self.pythons:
                libraries = _installed(python)
                for name, (library, _) in KNOWN.items():
                    if library in libraries:
                        self._found.setdefault(name, python)
        return self._found

    def get(self, name: str) -> Peer | None:
        """The peer, started; None when no interpreter has it."""
        if name not in self.found:
            return None
        if name not in self._running:
            self._running[name] = Peer(self.found[name], f"benchmarks.peers.{KNOWN[name][1]}")
        return self._running[name]


def _installed(python: str) -> str:
    libraries = [library for library, _ in KNOWN.values()]
    command = [python, "-P", "-c", _FIND, *libraries]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
