"""SavedModels and checkpoints from TensorFlow: their tensors, signatures and outputs.

Every checkpoint is read, and written again to the same bytes. Every graph is loaded by its tags, its signatures are
compared, and it is restored and run, all steps of a run in one session because state is kept.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from partita.actors import open_saved_model
from partita.errors import PartitaError
from partita.graph import load_saved_model
from partita.graph.dtypes import Array, parse_dtype
from partita.graph.formats.bundle_reader import BundleReader
from partita.graph.formats.bundle_writer import BundleWriter
from tests.conformance.corpus import Case, Tensors, cases, roots
from tests.conformance.test_values import check_close

CASES = cases("saved_model")
MODELS = [case for case in CASES if case.info["kind"] == "saved_model"]


def saved_tensors(case: Case) -> Iterator[tuple[str, str, Array]]:
    """Prefix, name and value of every tensor that must be in the case's checkpoint."""
    is_model = case.info["kind"] == "saved_model"
    prefix = case.folder / ("model/variables/variables" if is_model else case.info["prefix"])
    values = Tensors(case.folder / ("variables.npz" if is_model else "expected.npz"))
    for name, key in case.info["checkpoint"].items():
        yield str(prefix), name, values[key]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.path)
def test_checkpoints_hold_what_was_saved(case: Case) -> None:
    """Type, shape and value of each tensor, also of tensors saved in parts."""
    for prefix, name, value in saved_tensors(case):
        actual = BundleReader(prefix).read(name)
        assert (actual.dtype, actual.shape) == (value.dtype, value.shape)
        assert np.array_equal(actual, value), name


def _by_one_writer(case: Case) -> bool:
    """Whether the checkpoint has one data file and no tensor in parts; others have no defined order."""
    reader = BundleReader(next(saved_tensors(case))[0])
    return reader.header.num_shards == 1 and not any(entry.slices for _, entry in reader.entries())


BY_ONE_WRITER = [case for case in CASES if _by_one_writer(case)]


@pytest.mark.parametrize("case", BY_ONE_WRITER, ids=lambda case: case.path)
def test_checkpoints_are_written_as_they_were(case: Case, tmp_path: Path) -> None:
    """Writing the same tensors in the same order gives the same files."""
    prefix = next(saved_tensors(case))[0]
    reader = BundleReader(prefix)
    entries = list(reader.entries())
    with BundleWriter(str(tmp_path / "copy")) as writer:
        for key, _ in sorted(entries, key=lambda item: item[1].offset):
            writer.add(key.decode(), reader.read(key.decode()), reader.dtype(key.decode()))
    for end in ("index", "data-00000-of-00001"):
        assert Path(f"{tmp_path}/copy.{end}").read_bytes() == Path(f"{prefix}.{end}").read_bytes()


@pytest.mark.parametrize("case", MODELS, ids=lambda case: case.path)
def test_signatures_are_those_of_tensorflow(case: Case) -> None:
    """Names, tensors, types and shapes, of the graph with the tags."""
    for run in case.info["runs"]:
        saved = load_saved_model(case.folder / case.info["dir"], run["tags"])
        assert saved.signatures.keys() == run["signatures"].keys()
        for name, expected in run["signatures"].items():
            signature = saved.signature(name)
            assert signature.method == expected["method"]
            for arg, (tensor, dtype, shape) in expected["inputs"].items():
                spec = signature.inputs[arg]
                assert (spec.tensor, spec.dtype) == (tensor, parse_dtype(dtype))
                assert spec.shape == tuple(None if size < 0 else size for size in shape)
            outputs = {arg: (spec.tensor, spec.dtype) for arg, spec in signature.outputs.items()}
            assert outputs == {arg: (out[0], parse_dtype(out[1])) for arg, out in expected["outputs"].items()}


async def run_model(case: Case, run: dict[str, Any]) -> int:  # Any: JSON
    """Runs the steps of one loaded model; returns how many arrays were compared."""
    compared = 0
    async with open_saved_model(case.folder / case.info["dir"], run["tags"]) as model:
        for step in run["steps"]:
            feeds = {name: case.feeds[key] for name, key in step["feeds"].items()}
            actual = await model.run(feeds, step["signature"])
            assert actual.keys() == step["expected"].keys()
            for name, key in step["expected"].items():
                check_close(case, name, actual[name], case.expected[key])
                compared += 1
    return compared


@pytest.mark.parametrize("case", MODELS, ids=lambda case: case.path)
async def test_signatures_answer_as_in_tensorflow(case: Case) -> None:
    """Every output of every step, after restoring variables."""
    for run in case.info["runs"]:
        assert await run_model(case, run) == sum(len(step["expected"]) for step in run["steps"])


def _broken() -> list[Any]:  # Any: JSON
    """SavedModels for TensorFlow's C++ loader, most of them broken."""
    folder = roots()[0] / "errors2"
    listed = json.loads((folder / "errors2.json").read_text())
    return [info | {"folder": folder / info["dir"]} for info in listed if info["kind"] == "saved_model"]


BROKEN = _broken()


@pytest.mark.parametrize("info", BROKEN, ids=lambda info: info["name"])
async def test_broken_models_are_refused_as_in_tensorflow(info: dict[str, Any]) -> None:  # Any: JSON
    """With TensorFlow's code and message; ours adds the damaged file."""
    code, words = "OK", ""
    try:
        async with open_saved_model(info["folder"], info["tags"]):
            pass
    except PartitaError as error:
        code, words = error.code, error.message.replace(str(info["folder"]), info["dir"])
    expected = re.sub(r"\{\{function_node \S+\}\} ", "", info["c_loader"]["core"])  # whom an error passed on its way up
    assert (code, words.partition("; ")[0]) == (info["c_loader"]["code"], expected)
    assert words == expected or words.endswith("variables/variables.index is damaged")


def test_the_cases_are_all_there() -> None:
    """Models of TensorFlow 1 and 2, checkpoints of one writer, and broken models."""
    assert {"keras_mlp", "v1_main_op", "v1_ref_variables", "v1_table_asset", "v1_two_metagraphs"} <= {
        case.name for case in MODELS
    }
    assert len(BY_ONE_WRITER) >= 5
    assert len(BROKEN) >= 14
