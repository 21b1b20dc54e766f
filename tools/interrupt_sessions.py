"""Sends SIGINT to sessions at random moments and counts how they ended.

    python tools/interrupt_sessions.py 1000

Each try opens a session, in turn over two devices, in a loop over two devices, with kernels in worker threads, and on
one device alone, and runs steps without end; a thread sends the signal within 30 ms. Prints how many ended with a bare
KeyboardInterrupt, how many otherwise, and the longest time from the signal to the end. A try that hangs for half a
minute ends the tool with the stacks of all threads. Last, `partita run` is interrupted as often as a hundredth of that.
"""

from __future__ import annotations

import faulthandler
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import trio

from partita.actors import open_session
from partita.graph.builder import GraphBuilder
from partita.graph.protos import GraphDef
from partita.graph.structured import while_loop

SIZE, HANG_S = 64, 30
EXAMPLE = Path(__file__).parent.parent / "scenarios" / "examples" / "mlp.pb"


def steps(devices: int) -> GraphDef:
    """y = sum(-(x @ x)), the negation on the last device."""
    builder = GraphBuilder()
    x = builder.placeholder("x", "float32", (SIZE, SIZE), device="/device:CPU:0")
    negated = builder.op("Neg", builder.op("MatMul", x, x), device=f"/device:CPU:{devices - 1}")
    builder.op("Sum", negated, [0, 1], name="y", device="/device:CPU:0")
    return builder.graph_def()


def loop() -> GraphDef:
    """y: x is sent back and forth between two devices in an endless loop."""
    builder = GraphBuilder()
    x = builder.placeholder("x", "float32", (SIZE, SIZE), device="/device:CPU:0")

    def body(value: Any) -> Any:
        there = builder.op("Neg", value, device="/device:CPU:1")
        return builder.op("Neg", there, device="/device:CPU:0")

    def goes_on(value: Any) -> Any:
        return builder.op("Greater", builder.op("Sum", value, [0, 1]), 0.0)

    with builder.device("/device:CPU:0"):
        (y,) = while_loop(builder, goes_on, body, [x])
        builder.op("Identity", y, name="y")
    return builder.graph_def()


KINDS: dict[str, tuple[GraphDef, dict[str, Any]]] = {
    "two devices": (steps(2), {}),
    "a loop over two devices": (loop(), {}),
    "worker threads": (steps(2), {"budget_s": 0, "thread_limit_s": 0}),
    "one device": (steps(1), {}),
}


async def run_for_ever(kind: str, sent: list[float]) -> None:
    """Runs steps in a session, and starts the thread that interrupts them."""
    graph_def, settings = KINDS[kind]
    feeds = {"x": np.ones((SIZE, SIZE), np.float32)}
    async with open_session(graph_def, "cpu:2", **settings) as session:
        threading.Thread(target=interrupt, args=(random.random() * 0.03, sent)).start()
        while True:
            await session.run("y", feeds)


def interrupt(after_s: float, sent: list[float]) -> None:
    """Sends the signal to the main thread."""
    time.sleep(after_s)
    sent.append(time.perf_counter())
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)


def ended(kind: str) -> tuple[str, float]:
    """How one try ended, and how long after the signal."""
    sent: list[float] = []
    faulthandler.dump_traceback_later(HANG_S, exit=True)
    try:
        trio.run(partial(run_for_ever, kind, sent))
    except BaseException as error:  # noqa: BLE001 - any exception is a result
        return type(error).__name__, time.perf_counter() - sent[0]
    finally:
        faulthandler.cancel_dump_traceback_later()
    return "nothing", 0.0


def command_ended() -> tuple[str, float]:
    """How one call of `partita run` ended, and how long after the signal."""
    call = [sys.executable, "-m", "partita", "run", str(EXAMPLE), "--steps", "1000000"]
    process = subprocess.Popen(call, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    time.sleep(1 + random.random())
    sent = time.perf_counter()
    process.send_signal(signal.SIGINT)
    _, text = process.communicate(timeout=HANG_S)
    return f"exit code {process.returncode}, {text.decode().strip()!r}", time.perf_counter() - sent


def main(tries: int) -> None:
    """Prints the counts."""
    random.seed(tries)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job ignores it, and its children do
    results: Counter[tuple[str, str]] = Counter()
    longest: Counter[str] = Counter()
    kinds = list(KINDS)
    for number in range(tries):
        kind = kinds[number % len(kinds)]
        how, took_s = ended(kind)
        results[kind, how] += 1
        longest[kind] = max(longest[kind], round(took_s * 1000))
    for _ in range(tries // 100):
        how, took_s = command_ended()
        results["partita run", how] += 1
        longest["partita run"] = max(longest["partita run"], round(took_s * 1000))
    for (kind, how), count in sorted(results.items()):
        print(f"{kind:<24} {count:>6}  {how}; longest {longest[kind]} ms")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
