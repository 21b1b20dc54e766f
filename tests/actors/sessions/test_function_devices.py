"""A function of several devices takes its arguments on given devices and leaves its results on given devices."""

from __future__ import annotations

import pytest
from google.protobuf import text_format
from hypothesis import given
from hypothesis import strategies as st

from partita.actors import FunctionRuntime, InstantiateOptions, RunMetadata, RunOptions, open_function_runtime
from partita.errors import InvalidArgumentError
from partita.graph import FunctionDefLibrary
from partita.graph.protos import FunctionDef

MIX = """
signature {
  name: "Mix"
  input_arg { name: "x" type: DT_FLOAT }
  input_arg { name: "y" type: DT_FLOAT }
  output_arg { name: "sum" type: DT_FLOAT }
  output_arg { name: "product" type: DT_FLOAT }
  output_arg { name: "same" type: DT_FLOAT }
}
node_def { name: "add" op: "AddV2" input: "x" input: "y" attr { key: "T" value { type: DT_FLOAT } }
  device: "/device:CPU:3" }
node_def { name: "mul" op: "Mul" input: "x" input: "y" attr { key: "T" value { type: DT_FLOAT } } }
ret { key: "sum" value: "add:z:0" }
ret { key: "product" value: "mul:z:0" }
ret { key: "same" value: "y" }
"""
NUM_DEVICES = 4
NAMES = [f"/device:CPU:{i}" for i in range(NUM_DEVICES)]
DEVICES = st.sampled_from(NAMES)


def library() -> FunctionDefLibrary:
    return FunctionDefLibrary(function=[text_format.Parse(MIX, FunctionDef())])


async def placed(runtime: FunctionRuntime, options: InstantiateOptions) -> dict[str, str]:
    """The local device of each node of the function, of arguments and results, too, after a run that computes."""
    handle = runtime.instantiate("Mix", options=options)
    metadata = RunMetadata()
    collect = RunOptions(output_partition_graphs=True)
    assert await runtime.run(handle, 2.0, 3.0, options=collect, metadata=metadata) == [5.0, 6.0, 3.0]
    runtime.release(handle)
    nodes = [node for graph in metadata.partition_graphs for node in graph.node]
    return {node.name: "/device" + node.device.rpartition("/device")[2] for node in nodes}


@given(st.tuples(DEVICES, DEVICES), st.tuples(DEVICES, DEVICES, DEVICES), DEVICES)
async def test_arguments_and_results_are_where_they_are_wanted(
    inputs: tuple[str, ...], outputs: tuple[str, ...], target: str
) -> None:
    """Wherever the function is called from; what a node requests holds."""
    async with open_function_runtime(library(), f"cpu:{NUM_DEVICES}") as runtime:
        options = InstantiateOptions(target, is_multi_device=True, input_devices=inputs, output_devices=outputs)
        devices = await placed(runtime, options)
    assert (devices["x"], devices["y"]) == inputs
    assert tuple(devices[f"{name}_RetVal"] for name in ("sum", "product", "same")) == outputs
    assert devices["add"] == NAMES[3]


async def test_results_stay_where_they_are_made() -> None:
    """By request of the node, or where the argument is that is passed on; others are placed beside the target."""
    async with open_function_runtime(library(), f"cpu:{NUM_DEVICES}") as runtime:
        options = InstantiateOptions(NAMES[2], is_multi_device=True, input_devices=(NAMES[1], NAMES[0]))
        devices = await placed(runtime, options)
    assert devices["sum_RetVal"] == devices["add"] == NAMES[3]
    assert devices["same_RetVal"] == devices["y"] == NAMES[0]
    assert devices["product_RetVal"] == devices["mul"] == NAMES[2]


async def test_a_device_may_be_left_to_the_placer() -> None:
    """An empty name is none; without names of inputs they are on the target."""
    async with open_function_runtime(library(), f"cpu:{NUM_DEVICES}") as runtime:
        options = InstantiateOptions(NAMES[1], is_multi_device=True, output_devices=(NAMES[2], "", NAMES[3]))
        devices = await placed(runtime, options)
    assert (devices["x"], devices["y"]) == (NAMES[1], NAMES[1])
    assert [devices[f"{name}_RetVal"] for name in ("sum", "product", "same")] == [NAMES[2], NAMES[1], NAMES[3]]


@pytest.mark.parametrize("num_inputs", [0, 1, 3])
async def test_every_argument_has_a_device(num_inputs: int) -> None:
    """In TensorFlow's words; also where the function is instantiated already."""
    async with open_function_runtime(library(), f"cpu:{NUM_DEVICES}") as runtime:
        runtime.instantiate("Mix", options=InstantiateOptions(is_multi_device=True))
        options = InstantiateOptions(is_multi_device=True, input_devices=(NAMES[0],) * num_inputs)
        with pytest.raises(InvalidArgumentError) as refused:
            runtime.instantiate("Mix", options=options)
        assert refused.value.message == (
            "InstantiateOptions.input_devices must have the same length as the number of arguments: "
            f"input_devices length = {num_inputs} number of arguments = 2"
        )


@pytest.mark.parametrize("num_outputs", [1, 2, 4])
async def test_every_result_has_a_device_or_none_has(num_outputs: int) -> None:
    """In TensorFlow's words."""
    async with open_function_runtime(library(), f"cpu:{NUM_DEVICES}") as runtime:
        options = InstantiateOptions(is_multi_device=True, output_devices=(NAMES[0],) * num_outputs)
        with pytest.raises(InvalidArgumentError) as refused:
            runtime.instantiate("Mix", options=options)
        assert refused.value.message == (
            "InstantiateOptions.output_devices must either be empty or have the same length as the number of "
            f"arguments: output_devices length = {num_outputs} number of arguments = 3"
        )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (InstantiateOptions(input_devices=(NAMES[0],) * 2), "set is_multi_device"),
        (InstantiateOptions(output_devices=(NAMES[0],) * 3), "set is_multi_device"),
        (InstantiateOptions(is_multi_device=True, input_devices=(NAMES[0], "/device:CPU:9")), "'/device:CPU:9' is no"),
        (InstantiateOptions(is_multi_device=True, output_devices=("/device:CPU:9",) * 3), "'/device:CPU:9' is no"),
    ],
)
async def test_devices_that_cannot_be_meant_are_refused(options: InstantiateOptions, message: str) -> None:
    """Those that do not exist, and those of a function that is on one device."""
    async with open_function_runtime(library(), f"cpu:{NUM_DEVICES}") as runtime:
        with pytest.raises(InvalidArgumentError, match=message):
            runtime.instantiate("Mix", options=options)


async def test_devices_tell_instantiations_apart() -> None:
    """However a device is spelled."""
    async with open_function_runtime(library(), f"cpu:{NUM_DEVICES}") as runtime:

        def handle(inputs: tuple[str, ...] | None, outputs: tuple[str, ...] = ()) -> int:
            options = InstantiateOptions(is_multi_device=True, input_devices=inputs, output_devices=outputs)
            return runtime.instantiate("Mix", options=options)

        first = handle((NAMES[1], NAMES[2]))
        assert handle(("cpu:1", runtime.cluster.names[2])) == first
        others = [handle(None), handle((NAMES[2], NAMES[1])), handle((NAMES[1], NAMES[2]), (NAMES[0],) * 3)]
        assert len({first, *others}) == 4
