"""How much of its time a run does work, where devices fail and checkpoints are written: an exact formula.

    best_checkpointing(mtbf_s=3600, checkpoint_s=120)
        interval_s 851.3     work between two checkpoints
        goodput 0.7635       of the time: the rest is checkpoints, and work that failures undid

Failures come at a constant rate, one every M seconds on average, whatever the run does then: it works, writes a
checkpoint or restarts. A run works for w seconds, writes a checkpoint for c, and goes on. A failure throws away what
was done since the last checkpoint that is whole; a restart takes r, and begins anew if a failure hits it.

    written  |--- w ---|- c -|--- w ---x  failure      |- r -|--- w ---|- c -|
                             ^ from here again                ^ as if nothing had been

Each checkpoint that is whole begins the same process anew (a renewal), so the share of time that is work is w by the
expected time E from one to the next. To get through a stretch L without a failure, from its start each time, takes
M (e^(L/M) - 1). The first try is of w + c, all others of r + w + c, so that

    E = M (1 - e^-(w+c)/M) + (1 - e^-(w+c)/M) M (e^(r+w+c)/M - 1) = M e^(r/M) (e^((w+c)/M) - 1)

(Daly: A higher order estimate of the optimum checkpoint interval for restart dumps, 2006). With x = w/M the share is
largest where 1 - x = e^-(x + c/M), that is at x = 1 + W(-e^-(1 + c/M)) with W the principal branch of Lambert's
function, where it is (1 - x) e^-(r/M). Young's optimum of first order, w = sqrt(2 c M), is too long: by 9.2 % at
M = 3600 s and c = 120 s.
"""

from __future__ import annotations

from math import exp, expm1, inf, isinf, sqrt

from attrs import frozen

from ....errors import InvalidArgumentError

_NEAR_BRANCH = 1e-2


@frozen
class Checkpointing:
    """`interval_s` is the work between two checkpoints in seconds, not the checkpoint; `goodput` a share of time."""

    interval_s: float
    goodput: float


def best_checkpointing(mtbf_s: float, checkpoint_s: float, restart_s: float = 0.0) -> Checkpointing:
    """The time between checkpoints with the largest share of work, and that share.

    `mtbf_s` is the mean time between failures of all devices together, infinite where none fails: the interval is then
    infinite too. `checkpoint_s` is how long the run stands still for a checkpoint; if that is 0, so is the interval.
    A restart does not change the best interval. InvalidArgumentError for negative times, and for an `mtbf_s` of 0.
    """
    _check(mtbf_s, checkpoint_s, restart_s)
    if isinf(mtbf_s):
        return Checkpointing(inf, 1.0)
    share = _best_interval(checkpoint_s / mtbf_s)
    return Checkpointing(share * mtbf_s, (1 - share) * exp(-restart_s / mtbf_s))


def goodput_of_interval(interval_s: float, mtbf_s: float, checkpoint_s: float, restart_s: float = 0.0) -> float:
    """The share of time that is work with a checkpoint after each `interval_s` of it; see `best_checkpointing`.

    InvalidArgumentError for an interval that is not above 0 and finite.
    """
    _check(mtbf_s, checkpoint_s, restart_s)
    if not 0 < interval_s < inf:
        raise InvalidArgumentError(f"interval_s={interval_s!r} must be above 0 and finite")
    if isinf(mtbf_s):
        return interval_s / (interval_s + checkpoint_s)
    stretch = (interval_s + checkpoint_s) / mtbf_s
    return interval_s / mtbf_s * exp(-stretch - restart_s / mtbf_s) / -expm1(-stretch)


def _best_interval(checkpoint: float) -> float:
    """1 + W(-e^-(1 + checkpoint)): interval and checkpoint are shares of the mean time between failures."""
    from scipy.special import lambertw  # late: few plans ask for failures

    root = sqrt(-2 * expm1(-checkpoint))
    if root < _NEAR_BRANCH:  # W is nearly -1, and 1 + W would be a difference of equal numbers: Puiseux' series of it
        return root * (1 - root * (1 / 3 - root * (11 / 72 - root * (43 / 540 - root * 769 / 17280))))
    return 1 + float(lambertw(-exp(-1 - checkpoint)).real)


def _check(mtbf_s: float, checkpoint_s: float, restart_s: float) -> None:
    if not mtbf_s > 0:
        raise InvalidArgumentError(f"mtbf_s={mtbf_s!r} must be above 0; it is infinite where nothing fails")
    for name, seconds in (("checkpoint_s", checkpoint_s), ("restart_s", restart_s)):
        if not 0 <= seconds < inf:
            raise InvalidArgumentError(f"{name}={seconds!r} must be 0 or more, and finite")
