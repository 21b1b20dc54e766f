"""Named pools of threads, which all sessions of the process share: the counts of threads that they were made with.

Partita's sessions have no such threads, but a graph that runs here should run in TensorFlow, which refuses a second
session that gives a named pool another count.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ....errors import InvalidArgumentError

if TYPE_CHECKING:
    from ....graph import ConfigProto

_threads_of: dict[str, int] = {}


def check_thread_pools(config: ConfigProto) -> None:
    """Makes the named pools of `config`; InvalidArgumentError for one that exists with another count of threads."""
    for pool in config.session_inter_op_thread_pool:
        if not pool.global_name:
            continue
        threads = _threads_of.setdefault(pool.global_name, pool.num_threads)
        if threads != pool.num_threads:
            raise InvalidArgumentError(
                f"Pool {pool.global_name} configured previously with num_threads={threads}; "
                f"cannot re-configure with num_threads={pool.num_threads}"
            )
