"""Which passes a session, command or worker runs, by name and in order.

    Passes.of(options with level L1)                     converters, fold, common
    Passes.of(the same with do_function_inlining)        inline, converters, dead, identities, fold, common
    Passes.parse("inline,fold")                          inline, fold

`registry` says what each name stands for. Apart from the passes, which only sessions that ask for some import.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...errors import InvalidArgumentError
from ..protos import GraphOptions, OptimizerOptions
from .names import COMMON, CONVERTERS, DEAD, FOLD, IDENTITIES, INLINE

MAX_CONSTANT_BYTES = 10 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Passes:
    """The names of passes in the order in which they run; `fold` makes no constant over `max_constant_bytes`."""

    names: tuple[str, ...] = ()
    max_constant_bytes: int = MAX_CONSTANT_BYTES

    @classmethod
    def parse(cls, text: str) -> Passes:
        """The passes of names that are separated by commas; InvalidArgumentError for one that is given twice."""
        names = tuple(name.strip() for name in text.split(",") if name.strip())
        twice = next((name for number, name in enumerate(names) if name in names[:number]), None)
        if twice is not None:
            raise InvalidArgumentError(f"pass {twice!r} is given twice; name each pass once, in the order of the run")
        return cls(names)

    @classmethod
    def of(cls, options: GraphOptions) -> Passes:
        """The passes that the options of a session ask for: level L1, the default, stands for `fold` and `common`.

        Inlined calls leave Identity nodes behind, which further passes remove, as in TensorFlow. Options without
        `optimizer_options` ask for none, so that the partitioned graph is what runs and is simulated.
        """
        if not options.HasField("optimizer_options"):
            return NO_PASSES
        wanted = options.optimizer_options
        level, inlines = wanted.opt_level >= OptimizerOptions.L1, wanted.do_function_inlining
        of_switches = (
            (INLINE, inlines),
            (DEAD, inlines),
            (IDENTITIES, inlines),
            (FOLD, level or wanted.do_constant_folding),
            (COMMON, level or wanted.do_common_subexpression_elimination),
        )
        names = [name for name, is_on in of_switches if is_on]
        if names:
            names.insert(int(inlines), CONVERTERS)
        return cls(tuple(names), wanted.max_folded_constant_in_bytes or MAX_CONSTANT_BYTES)


NO_PASSES = Passes()
