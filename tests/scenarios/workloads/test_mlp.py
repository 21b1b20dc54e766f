"""The shipped example: the file equals the graph that its story builds, and its values are those of numpy."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from partita.graph import load_graph_def
from partita.graph.dtypes import Array
from partita.scenarios.stories import mlp
from tests.scenarios.command_line import CommandLine

EXAMPLE = Path(mlp.__file__).parents[1] / "examples" / "mlp.pb"


def by_hand() -> tuple[Array, Array]:
    """Classes and loss, in double precision."""
    x = mlp.pseudo_random(mlp.BATCH, mlp.SIZES[0], seed=7).astype(np.float64)
    for index, activation in ((1, lambda v: np.maximum(v, 0)), (2, np.tanh), (3, lambda v: v)):
        fan_in, fan_out = mlp.SIZES[index - 1], mlp.SIZES[index]
        w = mlp.pseudo_random(fan_in, fan_out, seed=1000 * index) * np.sqrt(6 / fan_in)
        x = activation(x @ w + mlp.pseudo_random(fan_out, seed=2000 * index))
    correct = x[np.arange(mlp.BATCH), np.arange(mlp.BATCH) % mlp.SIZES[-1]]
    return x.argmax(1), (np.log(np.exp(x).sum(1)) - correct).mean()


def test_the_file_is_what_the_story_builds() -> None:
    """If not: python -m partita.scenarios.stories.mlp scenarios/examples/mlp.pb"""
    assert load_graph_def(EXAMPLE) == mlp.build()


def test_without_a_flag_it_runs_on_the_devices_it_asks_for(partita: CommandLine, tmp_path: Path) -> None:
    """Values are those of numpy; the host and both GPUs take part in the step."""
    text = partita.done("run", EXAMPLE, "--out", tmp_path / "out.npz")
    classes, loss = by_hand()
    with np.load(tmp_path / "out.npz") as out:
        np.testing.assert_array_equal(out["class"], classes)
        np.testing.assert_allclose(out["loss"], loss, rtol=1e-5)
    assert len(set(classes.tolist())) > 3
    assert [name for name in ("gpu:0", "gpu:1", "cpu:0", "simulated step time") if name not in text] == []
