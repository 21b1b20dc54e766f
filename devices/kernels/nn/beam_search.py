"""Prefix beam search over the outputs of a CTC network (Graves and Jaitly, 2014, section 4).

A beam is a sequence of labels without blanks; the logarithm of its probability is kept in two parts, of the paths that
end in a blank and of those that end in its last label. After each step the `width` most probable beams stay.

    scores of one step: a 0.6, blank 0.4        beams: "a" 0.6, "" 0.4
    the same again                              beams: "a" 0.6 * 0.6 + 0.6 * 0.4 + 0.4 * 0.6, "" 0.16
                                                ("aa" needs a blank in between)

Beams form a tree. One that falls out of the best may come back as a new child of its parent.
"""

from __future__ import annotations

from heapq import heappush, heapreplace
from itertools import takewhile
from math import exp, log, log1p

import numpy as np

from ....graph.dtypes import Array

_NEVER = float("-inf")


def _log_sum(a: float, b: float) -> float:
    """The logarithm of the sum of two numbers given by their logarithms."""
    high, low = (a, b) if a > b else (b, a)
    return high if low == _NEVER else high + log1p(exp(low - high))


class Beam:
    """A sequence of labels: one label more than its parent's."""

    __slots__ = ("before", "before_blank", "blank", "children", "ended", "label", "parent", "total")

    def __init__(self, parent: Beam | None, label: int) -> None:
        self.parent, self.label = parent, label
        self.children: dict[int, Beam] = {}
        self.blank = self.ended = self.total = _NEVER
        """log probabilities of the paths that end in a blank, in the label, and of all"""
        self.before = self.before_blank = _NEVER
        """total and blank after the step before"""

    def drop(self) -> None:
        """Makes it none of the best."""
        self.blank = self.ended = self.total = _NEVER

    def child(self, label: int) -> Beam:
        """A new beam with one label more."""
        child = self.children[label] = Beam(self, label)
        return child

    def follow(self, log_p: list[float]) -> None:
        """One step in which the sequence stays as it is, or its last label was just reached from the parent."""
        parent = self.parent
        if parent is not None:
            if parent.total != _NEVER:
                came = parent.before_blank if self.label == parent.label else parent.before
                self.ended = _log_sum(self.ended, came)
            self.ended += log_p[self.label]
        self.blank = self.before + log_p[-1]
        self.total = _log_sum(self.blank, self.ended)

    def labels(self, merges: bool) -> list[int]:
        """The sequence; of equal labels in a row one if `merges`."""
        reversed_labels: list[int] = []
        beam = self
        while beam.parent is not None:
            if not (merges and reversed_labels and reversed_labels[-1] == beam.label):
                reversed_labels.append(beam.label)
            beam = beam.parent
        return reversed_labels[::-1]


class BeamSearch:
    """The best beams so far, for one sequence; the last class is the blank."""

    def __init__(self, width: int) -> None:
        root = Beam(None, -1)
        root.blank = root.total = 0.0
        self._width = width
        self._heap: list[tuple[float, int, Beam]] = [(0.0, 0, root)]  # the worst first; of equal ones the last
        self._count = 0

    def step(self, scores: Array) -> None:
        """Takes the scores of all classes, not normalised, at the next time."""
        top = float(scores.max())
        log_p = (scores - (top + log(float(np.exp(scores - top).sum())))).tolist()
        beams = self.best()
        for beam in beams:
            beam.before, beam.before_blank = beam.total, beam.blank
        self._heap = []
        for beam in beams:
            beam.follow(log_p)
            self._push(beam)
        labels_by_score = np.argsort(-scores[:-1], kind="stable").tolist()
        for beam in beams:
            if self._is_candidate(beam.before):
                self._grow(beam, log_p, labels_by_score)

    def best(self) -> list[Beam]:
        """The beams, the most probable first."""
        return [beam for _, _, beam in sorted(self._heap, key=lambda entry: entry[:2], reverse=True)]

    def _grow(self, beam: Beam, log_p: list[float], labels_by_score: list[int]) -> None:
        """Adds the children of a beam that are more probable than the worst beam, by label.

        The order matters: a child that the growth of another one made drop out starts anew, without its past, and if it
        is not good enough for that, does not grow either. Of the other labels only those are looked at that are good
        enough for the worst beam there is now; it only gets better.
        """
        good = set(takewhile(lambda label: self._is_candidate(beam.before + log_p[label]), labels_by_score))
        for label in sorted(good | beam.children.keys()):
            child = beam.children.get(label)
            if child is not None and child.total != _NEVER:
                continue
            total = log_p[label] + (beam.before_blank if label == beam.label else beam.before)
            if self._is_candidate(total):
                child = child or beam.child(label)
                child.blank, child.ended, child.total = _NEVER, total, total
                self._push(child)
            elif child is not None:
                child.before = child.before_blank = _NEVER

    def _is_candidate(self, total: float) -> bool:
        return total > _NEVER and (len(self._heap) < self._width or total > self._heap[0][0])

    def _push(self, beam: Beam) -> None:
        self._count += 1
        entry = (beam.total, -self._count, beam)
        if len(self._heap) < self._width:
            heappush(self._heap, entry)
        elif beam.total > self._heap[0][0]:
            heapreplace(self._heap, entry)[2].drop()
