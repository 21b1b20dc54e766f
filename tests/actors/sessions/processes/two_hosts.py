"""Two network namespaces, each with a worker of dask, as if they were two machines; for root on Linux.

    this namespace   scheduler and session   ---.
    namespace a      worker "a"              ---+--- a bridge, one subnet of 198.18.0.0/15, which is for tests
    namespace b      worker "b"              ---'

`cut` takes a host off the network without a word to anybody, as a broken switch does.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from distributed import LocalCluster

HOSTS = ("a", "b")


class NoNamespaces(Exception):
    """Raised where no network namespaces can be made; says why."""


@dataclass(frozen=True)
class TwoHosts:
    """The address of the scheduler, and how to cut a host off."""

    address: str
    prefix: str

    @contextmanager
    def cut(self, host: str) -> Iterator[None]:
        """A block in which nothing reaches the host, and nothing leaves it."""
        _ip("link", "set", f"{self.prefix}{host}", "down")
        try:
            yield
        finally:
            _ip("link", "set", f"{self.prefix}{host}", "up")


def _ip(*arguments: str) -> None:
    done = subprocess.run(["ip", *arguments], check=False, capture_output=True, text=True)
    if done.returncode:
        raise NoNamespaces(f"ip {' '.join(arguments)}: {done.stderr.strip()}")


@contextmanager
def two_hosts() -> Iterator[TwoHosts]:
    """The hosts, with their workers."""
    if shutil.which("ip") is None or os.geteuid() != 0:
        raise NoNamespaces("network namespaces are made by root, with the command ip")
    prefix, subnet = f"pt{os.getpid() % 100_000}", f"198.18.{os.getpid() % 256}"
    with ExitStack() as undo:
        _ip("link", "add", f"{prefix}br", "type", "bridge")
        undo.callback(_ip, "link", "del", f"{prefix}br")
        _ip("addr", "add", f"{subnet}.1/24", "dev", f"{prefix}br")
        _ip("link", "set", f"{prefix}br", "up")
        for number, host in enumerate(HOSTS, 2):
            _add_host(undo, prefix, host, f"{subnet}.{number}/24")
        cluster = undo.enter_context(_scheduler(f"{subnet}.1"))
        for number, host in enumerate(HOSTS, 2):
            undo.enter_context(_worker(cluster.scheduler_address, f"{prefix}{host}", host, f"{subnet}.{number}"))
        yield TwoHosts(cluster.scheduler_address, prefix)


def _add_host(undo: ExitStack, prefix: str, host: str, address: str) -> None:
    """A namespace with an interface, whose other end is at the bridge."""
    outside, inside, space = f"{prefix}{host}", f"{prefix}{host}i", f"{prefix}{host}"
    _ip("netns", "add", space)
    undo.callback(_ip, "netns", "del", space)
    _ip("link", "add", outside, "type", "veth", "peer", "name", inside, "netns", space)
    undo.callback(_ip, "link", "del", outside)
    _ip("link", "set", outside, "master", f"{prefix}br", "up")
    _ip("-n", space, "addr", "add", address, "dev", inside)
    _ip("-n", space, "link", "set", inside, "up")
    _ip("-n", space, "link", "set", "lo", "up")


@contextmanager
def _scheduler(host: str) -> Iterator[LocalCluster]:
    from distributed import LocalCluster

    settings = {"dashboard": False}
    with LocalCluster(n_workers=0, host=host, dashboard_address=f"{host}:0", scheduler_kwargs=settings) as cluster:
        yield cluster


@contextmanager
def _worker(scheduler: str, space: str, name: str, host: str) -> Iterator[None]:
    python = [sys.executable, "-m", "distributed.cli.dask_worker", scheduler, "--no-nanny", "--no-dashboard"]
    flags = ["--nthreads", "1", "--host", host, "--name", name]
    worker = subprocess.Popen(
        ["ip", "netns", "exec", space, *python, *flags], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        yield
    finally:
        worker.kill()
        worker.wait()
