"""Which passes make the partitions of a session cheaper to run: from GraphOptions to what `optimize` is told.

Apart from the passes, which only sessions that ask for some import.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..protos import GraphOptions, OptimizerOptions

MAX_CONSTANT_BYTES = 10 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Optimisations:
    """Which passes to run. `inlining` says that function calls were inlined, which leaves Identity nodes behind."""

    common_subexpressions: bool = True
    constant_folding: bool = True
    inlining: bool = False
    max_constant_bytes: int = MAX_CONSTANT_BYTES
    """the largest value that is folded"""

    @property
    def any(self) -> bool:
        """Whether any pass is to run."""
        return self.common_subexpressions or self.constant_folding or self.inlining

    @classmethod
    def of(cls, options: GraphOptions) -> Optimisations:
        """The passes that the options of a session ask for: level L1, the default, stands for both passes.

        Options without `optimizer_options` ask for none, so that the partitioned graph is what runs and is simulated.
        """
        if not options.HasField("optimizer_options"):
            return NO_OPTIMISATIONS
        wanted = options.optimizer_options
        level = wanted.opt_level >= OptimizerOptions.L1
        return cls(
            level or wanted.do_common_subexpression_elimination,
            level or wanted.do_constant_folding,
            wanted.do_function_inlining,
            wanted.max_folded_constant_in_bytes or MAX_CONSTANT_BYTES,
        )


NO_OPTIMISATIONS = Optimisations(common_subexpressions=False, constant_folding=False)
