"""Connectionist temporal classification: its loss and gradient, and decoding (Graves et al., 2006).

Scores are [time, batch, classes], of which one class is the blank; steps after the end of a sequence are ignored.
"""

from __future__ import annotations

from itertools import groupby
from typing import Any

import numpy as np

from ....errors import FailedPreconditionError, InvalidArgumentError
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array
from ..checks import require
from ..registry import Construction, Kernel, kernel
from .beam_search import BeamSearch


def _check(scores: Array, lengths: Array, error: type[FailedPreconditionError | InvalidArgumentError]) -> None:
    require(scores.ndim == 3, "inputs is not a 3-Tensor")
    require(lengths.ndim == 1, "sequence_length is not a vector")
    steps, batch, _ = scores.shape
    if len(lengths) != batch:
        text = f"len(sequence_length):  {len(lengths)} batch_size: {batch}"
        raise error(f"len(sequence_length) != batch_size.  {text}")
    for b, length in enumerate(lengths.tolist()):
        if length > steps:
            raise error(f"sequence_length({b}) <= {steps}")


@kernel("CTCGreedyDecoder")
def ctc_greedy_decoder(node: Construction) -> Kernel:
    """The decoded classes as a sparse tensor, and minus the sum of the best scores."""
    merge, blank_attr = node.attrs["merge_repeated"], node.attrs["blank_index"]

    def decode(best: list[int], blank: int) -> list[int]:
        kept = [c for i, c in enumerate(best) if not (merge and i and best[i - 1] == c)]
        return [c for c in kept if c != blank]

    def run(scores: Array, lengths: Array) -> tuple[Array, Array, Array, Array]:
        _check(scores, lengths, FailedPreconditionError)
        classes = scores.shape[2]
        if not -classes <= blank_attr < classes:
            raise InvalidArgumentError(
                f"blank_index expected to be between {-classes} and {classes - 1} but was {blank_attr}"
            )
        best, ends = scores.argmax(axis=2), np.maximum(lengths, 0).tolist()
        rows = [decode(best[:end, b].tolist(), blank_attr % classes) for b, end in enumerate(ends)]
        totals = [-scores[:end, b].max(axis=1).sum(dtype=scores.dtype) for b, end in enumerate(ends)]
        return *_as_sparse(rows), np.array(totals, scores.dtype).reshape(len(rows), 1)

    return run


def _as_sparse(rows: list[list[int]]) -> tuple[Array, Array, Array]:
    """Indices, values and shape of a sparse matrix with these rows."""
    places = [(b, i) for b, row in enumerate(rows) for i in range(len(row))]
    shape = np.array([len(rows), max(map(len, rows), default=0)], np.int64)
    indices = np.array(places, np.int64).reshape(len(places), 2)
    return indices, np.array([label for row in rows for label in row], np.int64), shape


@kernel("CTCBeamSearchDecoder")
def ctc_beam_search_decoder(node: Construction) -> Kernel:
    """The most probable label sequences of each row as sparse matrices, best first, and their log probabilities."""
    width, paths, merges = (int(node.attrs[name]) for name in ("beam_width", "top_paths", "merge_repeated"))
    require(paths <= width, "requested more paths than the beam width.")

    def run(scores: Array, lengths: Array) -> tuple[Array, ...]:
        _check(scores, lengths, FailedPreconditionError)
        require(scores.size > 0, "inputs must not be empty")
        chances = np.zeros((scores.shape[1], paths), scores.dtype)
        decoded: list[list[list[int]]] = [[] for _ in range(paths)]
        for b, length in enumerate(lengths.tolist()):
            search = BeamSearch(width)
            for step in range(length):
                search.step(scores[step, b].astype(np.float64))
            best = search.best()[:paths]
            require(len(best) == paths, "Less leaves in the beam search than requested.")
            chances[b] = [beam.total for beam in best]
            for rows, beam in zip(decoded, best, strict=True):
                rows.append(beam.labels(bool(merges)))
        indices, values, shapes = zip(*map(_as_sparse, decoded), strict=True)
        return *indices, *values, *shapes, chances

    return run


def _path(labels: list[int], blank: int) -> Array:
    """The labels with blanks before, between and after them."""
    path = np.full(2 * len(labels) + 1, blank)
    path[1::2] = labels
    return path


def _forward(log_p: Array, skips: Array, merge: bool) -> Array:
    """Log likelihoods [time, position] of all paths to a position; paths may omit the position before where `skips`."""
    steps, places = log_p.shape
    alpha = np.full((steps, places), -np.inf)
    alpha[0, :2] = log_p[0, :2]
    is_label = np.arange(places) % 2 == 1
    for t in range(1, steps):
        before = alpha[t - 1]
        stay = before if merge else np.where(is_label, -np.inf, before)
        step = np.concatenate([[-np.inf], before[:-1]])
        skip = np.where(skips, np.concatenate([[-np.inf, -np.inf], before[:-2]])[:places], -np.inf)
        alpha[t] = np.logaddexp(np.logaddexp(stay, step), skip) + log_p[t]
    return alpha


def _loss_of_one(scores: Array, labels: list[int], merge: bool) -> tuple[float, Array]:
    """Loss and gradient [time, classes] of one sequence, in double precision."""
    blank = scores.shape[1] - 1
    top = scores - scores.max(axis=1, keepdims=True)
    log_y = top - np.log(np.exp(top).sum(axis=1, keepdims=True))
    path = _path(labels, blank)
    log_p = log_y[:, path]
    skips = np.zeros(len(path), bool)
    skips[2:] = (path[2:] != blank) & ((path[2:] != path[:-2]) | (not merge))
    alpha = _forward(log_p, skips, merge)
    after = np.zeros(len(path), bool)
    after[:-2] = skips[2:]
    beta = _forward(log_p[::-1, ::-1], after[::-1], merge)[::-1, ::-1] - log_p
    likelihood = np.logaddexp.reduce(alpha[-1, -2:])
    share = np.exp(alpha + beta - likelihood) if np.isfinite(likelihood) else np.zeros_like(alpha)
    occupancy = np.zeros_like(log_y)
    np.add.at(occupancy.T, path, share.T)
    return -float(likelihood), np.exp(log_y) - occupancy


def _check_labels(places: Array, values: Array) -> None:
    require(places.ndim == 2, "labels_indices is not a matrix")
    require(values.ndim == 1, "labels_values is not a vector")
    require(len(places) == len(values), "labels_indices and labels_values must contain the same number of rows")
    require(places.shape[1] > 0, "labels_indices second dimension must be >= 1. Received 0")


@kernel("CTCLoss")
def ctc_loss(node: Construction) -> Kernel:
    """Loss [batch] and gradient [time, batch, classes]; the last class is the blank."""
    names = ("preprocess_collapse_repeated", "ctc_merge_repeated", "ignore_longer_outputs_than_inputs")
    collapse, merge, ignore = (node.attrs[name] for name in names)

    def checked(labels: list[int], blank: int, b: int) -> list[int]:
        """The labels up to the first that is not a class before the blank."""
        if any(label < 0 for label in labels):
            text = ",".join(map(str, labels))
            raise InvalidArgumentError(f"All labels must be nonnegative integers, batch: {b} labels: {text}")
        ends = [i for i, label in enumerate(labels) if label >= blank]
        return labels[: ends[0]] if ends else labels

    def fits(labels: list[int], length: int) -> bool:
        """Whether there is a step for each label; too few steps for repetitions make the loss infinite."""
        if len(labels) > length and not ignore:
            raise InvalidArgumentError(
                f"Not enough time for target transition sequence (required: {len(labels)}, available: {length})0"
                "You can turn this error into a warning by using the flag ignore_longer_outputs_than_inputs"
            )
        return len(labels) <= length

    def run(scores: Array, places: Array, values: Array, lengths: Array) -> tuple[Any, Any]:
        _check(scores, lengths, InvalidArgumentError)
        _check_labels(places, values)
        require(scores.shape[2] > 0, "num_classes must be > 0")
        batch = scores.shape[1]
        rows: list[list[int]] = [[] for _ in range(batch)]
        for i, (b, value) in enumerate(zip(places[:, 0].tolist(), values.tolist(), strict=True)):
            place = shape_text(tuple(places[i].tolist()))
            require(0 <= b < batch, f"label SparseTensor is not valid: indices[{i}] = {place} is out of bounds")
            rows[b].append(value)
        for b, row in enumerate(rows):
            require(bool(row), f"Labels length is zero in batch {b}")
        loss, gradient = np.zeros(batch, scores.dtype), np.zeros_like(scores)
        for b, length in enumerate(lengths.tolist()):
            labels = checked(rows[b], scores.shape[2] - 1, b)
            if fits(labels, length) and length > 0:
                labels = [label for label, _ in groupby(labels)] if collapse else labels
                loss[b], gradient[:length, b] = _loss_of_one(scores[:length, b].astype(np.float64), labels, merge)
        return loss, gradient

    return run
