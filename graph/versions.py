"""The versions of programs that wrote a graph and that may read it.

This program is producer and consumer `PRODUCER`, and reads graphs from producer `MIN_PRODUCER` on.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..errors import InvalidArgumentError
from .ops.registry import MIN_PRODUCER, PRODUCER, RELEASE
from .protos import VersionDef

FIRST_WITH_FUNCTIONS = 12
"""consumers from this one on read graphs that have functions"""
LAST_WITH_MATRICES_OF_AXES = 20
"""producers up to this one may write the axes of a reduction as a tensor of any rank: [[1, 2]] for [1, 2]"""
LAST_WITH_SCALARS_FOR_ANYTHING = 21
"""producers up to this one cannot express an unknown shape of a placeholder: they write that of a scalar"""


@dataclass(frozen=True, slots=True)
class Versions:
    """Which producers wrote a graph and which consumers may read it."""

    producer: int = PRODUCER
    min_consumer: int = 0
    bad_consumers: tuple[int, ...] = ()

    @classmethod
    def of(cls, message: VersionDef) -> Versions:
        """The versions in a GraphDef; InvalidArgumentError when this program must not read graphs of that version."""
        if message.producer < MIN_PRODUCER:
            raise InvalidArgumentError(
                f"GraphDef producer version {message.producer} below min producer {MIN_PRODUCER} supported by "
                f"TensorFlow {RELEASE}.  Please regenerate your graph."
            )
        if message.min_consumer > PRODUCER:
            raise InvalidArgumentError(
                f"GraphDef min consumer version {message.min_consumer} above current version {PRODUCER} for TensorFlow "
                f"{RELEASE}.  Please upgrade TensorFlow."
            )
        if PRODUCER in message.bad_consumers:
            raise InvalidArgumentError(
                f"GraphDef disallows consumer version {PRODUCER}.  Please upgrade TensorFlow: this version is likely "
                "buggy."
            )
        return cls(message.producer, message.min_consumer, tuple(message.bad_consumers))

    def joined(self, other: Versions) -> Versions:
        """The versions of a graph after importing another one: the older producer, the newer consumers."""
        return Versions(
            min(self.producer, other.producer),
            max(self.min_consumer, other.min_consumer),
            tuple(sorted({*self.bad_consumers, *other.bad_consumers})),
        )

    def with_functions(self) -> Versions:
        """The versions of the graph once it has functions, which old consumers cannot read."""
        return replace(self, min_consumer=max(self.min_consumer, FIRST_WITH_FUNCTIONS))

    def message(self) -> VersionDef:
        """The same as a protobuf message, as a GraphDef has it."""
        return VersionDef(producer=self.producer, min_consumer=self.min_consumer, bad_consumers=self.bad_consumers)
