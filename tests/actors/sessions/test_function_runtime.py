"""Functions instantiated under handles: equal ones share a handle, each has its state, released ones are gone.

A function of several devices takes its arguments on given devices and leaves its results on given devices.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import trio
import trio.testing
from google.protobuf import text_format
from hypothesis import given, strategies as st

from partita.actors import FunctionRuntime, InstantiateOptions, RunMetadata, RunOptions, open_function_runtime
from partita.errors import CancelledError, InvalidArgumentError, NotFoundError
from partita.graph import FunctionDefLibrary, NameAttrList
from partita.graph.protos import FunctionDef

SCALE = """
signature {
  name: "Scale"
  input_arg { name: "x" type_attr: "T" }
  output_arg { name: "y" type_attr: "T" }
  attr { name: "T" type: "type" }
}
node_def { name: "two" op: "Const" attr { key: "dtype" value { type: DT_INT64 } } attr { key: "value" value {
  tensor { dtype: DT_INT64 tensor_shape {} int64_val: %d } } } }
node_def { name: "factor" op: "Cast" input: "two:output:0"
  attr { key: "SrcT" value { type: DT_INT64 } } attr { key: "DstT" value { placeholder: "T" } } }
node_def { name: "y" op: "Mul" input: "x" input: "factor:y:0" attr { key: "T" value { placeholder: "T" } } }
ret { key: "y" value: "y:z:0" }
"""
TWICE = """
signature {
  name: "Twice"
  input_arg { name: "x" type: DT_FLOAT }
  output_arg { name: "y" type: DT_FLOAT }
}
node_def { name: "once" op: "Scale" input: "x" attr { key: "T" value { type: DT_FLOAT } } }
node_def { name: "y" op: "Scale" input: "once:y:0" attr { key: "T" value { type: DT_FLOAT } } }
ret { key: "y" value: "y:y:0" }
"""
DRAW = """
signature { name: "Draw" output_arg { name: "y" type: DT_INT32 } is_stateful: true }
node_def { name: "shape" op: "Const" attr { key: "dtype" value { type: DT_INT32 } } attr { key: "value" value {
  tensor { dtype: DT_INT32 tensor_shape { dim { size: 1 } } int_val: 1 } } } }
node_def { name: "low" op: "Const" attr { key: "dtype" value { type: DT_INT32 } } attr { key: "value" value {
  tensor { dtype: DT_INT32 tensor_shape {} int_val: 0 } } } }
node_def { name: "high" op: "Const" attr { key: "dtype" value { type: DT_INT32 } } attr { key: "value" value {
  tensor { dtype: DT_INT32 tensor_shape {} int_val: 1000000 } } } }
node_def { name: "y" op: "RandomUniformInt" input: "shape:output:0" input: "low:output:0" input: "high:output:0"
  attr { key: "T" value { type: DT_INT32 } } attr { key: "Tout" value { type: DT_INT32 } }
  attr { key: "seed" value { i: 37 } } attr { key: "seed2" value { i: 48 } } }
ret { key: "y" value: "y:output:0" }
"""
COUNT = """
signature { name: "Count" input_arg { name: "x" type: DT_FLOAT } output_arg { name: "y" type: DT_FLOAT }
  is_stateful: true }
node_def { name: "v" op: "VarHandleOp" attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "shape" value {
  shape {} } } attr { key: "shared_name" value { s: "v" } } }
node_def { name: "set" op: "AssignVariableOp" input: "v:resource:0" input: "x"
  attr { key: "dtype" value { type: DT_FLOAT } } }
node_def { name: "y" op: "ReadVariableOp" input: "v:resource:0" input: "^set"
  attr { key: "dtype" value { type: DT_FLOAT } } }
ret { key: "y" value: "y:value:0" }
"""
READ = """
signature { name: "Read" output_arg { name: "y" type: DT_FLOAT } is_stateful: true }
node_def { name: "v" op: "VarHandleOp" attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "shape" value {
  shape {} } } attr { key: "shared_name" value { s: "v" } } }
node_def { name: "y" op: "ReadVariableOp" input: "v:resource:0" attr { key: "dtype" value { type: DT_FLOAT } } }
ret { key: "y" value: "y:value:0" }
"""

QUEUE = """
node_def { name: "q" op: "FIFOQueueV2" attr { key: "component_types" value { list { type: DT_FLOAT } } }
  attr { key: "shared_name" value { s: "q" } } }
"""
TAKE = f"""
signature {{ name: "Take" output_arg {{ name: "y" type: DT_FLOAT }} is_stateful: true }}
{QUEUE}
node_def {{ name: "y" op: "QueueDequeueV2" input: "q:handle:0"
  attr {{ key: "component_types" value {{ list {{ type: DT_FLOAT }} }} }} }}
ret {{ key: "y" value: "y:components:0" }}
"""
PUT = f"""
signature {{ name: "Put" input_arg {{ name: "x" type: DT_FLOAT }} is_stateful: true }}
{QUEUE}
node_def {{ name: "put" op: "QueueEnqueueV2" input: "q:handle:0" input: "x"
  attr {{ key: "Tcomponents" value {{ list {{ type: DT_FLOAT }} }} }} }}
control_ret {{ key: "put" value: "put" }}
"""


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


def library(*texts: str) -> FunctionDefLibrary:
    return FunctionDefLibrary(function=[text_format.Parse(text, FunctionDef()) for text in texts])


def functions() -> FunctionDefLibrary:
    return library(SCALE % 2, TWICE, DRAW, COUNT, READ)


@pytest.mark.parametrize("dtype", ["float32", "int64", "float64"])
async def test_a_function_of_any_type_runs_under_its_handle(dtype: str) -> None:
    async with open_function_runtime(functions(), "cpu:2") as runtime:
        handle = runtime.instantiate("Scale", {"T": dtype})
        (y,) = await runtime.run(handle, np.ones(3, dtype))
        assert y.tolist() == [2, 2, 2]
        assert not y.flags.writeable


async def test_equal_instantiations_share_a_handle() -> None:
    """The default target is the first device, however it is spelled; attrs, targets and states tell others apart."""
    async with open_function_runtime(functions(), "cpu:2") as runtime:
        handle = runtime.instantiate("Scale", {"T": "float32"})
        for same in ("/device:CPU:0", "cpu:0", runtime.cluster.names[0]):
            assert runtime.instantiate("Scale", {"T": "float32"}, InstantiateOptions(target=same)) == handle
        others = [
            runtime.instantiate("Scale", {"T": "int32"}),
            runtime.instantiate("Twice"),
            *(
                runtime.instantiate("Scale", {"T": "float32"}, options)
                for options in (
                    InstantiateOptions(target="/device:CPU:1"),
                    InstantiateOptions(state_handle="other"),
                    InstantiateOptions(is_multi_device=True),
                )
            ),
        ]
        assert len({handle, *others}) == 1 + len(others)


async def test_a_target_has_all_nodes() -> None:
    async with open_function_runtime(functions(), "cpu:2") as runtime:
        for target in runtime.cluster.names:
            handle = runtime.instantiate("Twice", options=InstantiateOptions(target=target))
            metadata = RunMetadata()
            assert await runtime.run(
                handle, 3.0, options=RunOptions(output_partition_graphs=True), metadata=metadata
            ) == [12.0]
            assert {node.device for graph in metadata.partition_graphs for node in graph.node} == {target}
        with pytest.raises(InvalidArgumentError, match=r"is no device of this cluster"):
            runtime.instantiate("Twice", options=InstantiateOptions(target="/device:CPU:9"))


async def test_an_overlay_library_is_used_in_place_of_that_of_the_runtime() -> None:
    """Also by the functions that are called; the same object is equal, another is not."""
    overlay = library(SCALE % 5, TWICE)
    async with open_function_runtime(library(SCALE % 2)) as runtime:
        with pytest.raises(NotFoundError, match=r"^Function Twice is not defined\."):
            runtime.instantiate("Twice")
        handle = runtime.instantiate("Twice", options=InstantiateOptions(library=overlay))
        assert runtime.instantiate("Twice", options=InstantiateOptions(library=overlay)) == handle
        assert runtime.instantiate("Twice", options=InstantiateOptions(library=library(SCALE % 3, TWICE))) != handle
        scale = runtime.instantiate("Scale", {"T": "float32"})
        assert [await runtime.run(handle, 1.0), await runtime.run(scale, 1.0)] == [[25.0], [2.0]]
        with pytest.raises(NotFoundError, match=r"^Function Twice is not defined\."):
            runtime.instantiate("Twice")


async def test_another_state_handle_gives_the_sequence_from_its_start() -> None:
    """As TensorFlow's test of state handles; a function that was released and instantiated again begins anew too."""

    async def draws(runtime: Any, handle: int) -> list[int]:
        return [int(value) for _ in range(3) for (value,) in await runtime.run(handle)]

    async with open_function_runtime(functions()) as runtime:
        plain = runtime.instantiate("Draw")
        first = await draws(runtime, plain)
        assert len(set(first)) == len(first)
        assert await draws(runtime, runtime.instantiate("Draw")) != first
        one, two = (runtime.instantiate("Draw", options=InstantiateOptions(state_handle=name)) for name in "ab")
        assert await draws(runtime, one) == first
        assert await draws(runtime, runtime.instantiate("Draw", options=InstantiateOptions(state_handle="a"))) != first
        assert await draws(runtime, two) == first
        for _ in range(2):
            runtime.release(plain)
        assert await draws(runtime, runtime.instantiate("Draw")) == first


async def test_functions_share_variables() -> None:
    async with open_function_runtime(functions()) as runtime:
        write, read = runtime.instantiate("Count"), runtime.instantiate("Read")
        assert await runtime.run(write, 5.0) == [5.0]
        assert await runtime.run(read) == [5.0]
        runtime.release(write)
        assert await runtime.run(read) == [5.0]


async def test_the_gradient_of_a_function_is_instantiated_too() -> None:
    async with open_function_runtime(functions()) as runtime:
        handle = runtime.instantiate("SymbolicGradient", {"f": NameAttrList(name="Twice")})
        assert await runtime.run(handle, 3.0, 1.0) == [4.0]
        with pytest.raises(InvalidArgumentError, match=r"^SymbolicGradient is missing attr: f"):
            runtime.instantiate("SymbolicGradient")
        with pytest.raises(InvalidArgumentError, match=r"^Can't take gradient of SymbolicGradient"):
            runtime.instantiate("SymbolicGradient", {"f": NameAttrList(name="SymbolicGradient")})


async def test_what_cannot_be_instantiated_or_run_is_refused() -> None:
    async with open_function_runtime(functions()) as runtime:
        with pytest.raises(NotFoundError, match=r"^Function Nobody is not defined\."):
            runtime.instantiate("Nobody")
        with pytest.raises(NotFoundError, match=r"^Attr T is not found from "):
            runtime.instantiate("Scale")
        handle = runtime.instantiate("Scale", {"T": "float32"})
        with pytest.raises(InvalidArgumentError, match=r"^Expects 1 arguments, but 2 is provided"):
            await runtime.run(handle, 1.0, 2.0)
        with pytest.raises(InvalidArgumentError, match=r"^Expects arg\[0\] to be float but int32 is provided"):
            await runtime.run(handle, np.ones(2, np.int32))


async def test_a_handle_lives_until_it_was_released_as_often_as_instantiated() -> None:
    async with open_function_runtime(functions()) as runtime:
        handle = runtime.instantiate("Scale", {"T": "float32"})
        assert runtime.instantiate("Scale", {"T": "float32"}) == handle
        runtime.release(handle)
        assert await runtime.run(handle, 1.0) == [2.0]
        runtime.release(handle)
        with pytest.raises(NotFoundError, match=f"^Handle: {handle} not found"):
            await runtime.run(handle, 1.0)
        with pytest.raises(NotFoundError, match=f"^Handle: {handle} not found"):
            runtime.release(handle)
        assert runtime.instantiate("Scale", {"T": "float32"}) != handle
    with pytest.raises(CancelledError):
        runtime.instantiate("Scale", {"T": "float32"})


async def test_a_call_under_way_ends_after_its_handle_was_released() -> None:
    """A function waits at a queue that another fills."""
    async with open_function_runtime(library(TAKE, PUT), "cpu:2") as runtime:
        take, put = runtime.instantiate("Take"), runtime.instantiate("Put")
        results: list[Any] = []

        async def call() -> None:
            results.extend(await runtime.run(take))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(call)
            await trio.testing.wait_all_tasks_blocked()
            runtime.release(take)
            assert await runtime.run(put, 8.0) == []
        assert results == [8.0]


async def test_calls_under_way_end_with_the_runtime() -> None:
    async with trio.open_nursery() as nursery:

        async def call() -> None:
            with pytest.raises(CancelledError):
                await runtime.run(take)

        async with open_function_runtime(library(TAKE)) as runtime:
            take = runtime.instantiate("Take")
            nursery.start_soon(call)
            await trio.testing.wait_all_tasks_blocked()


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
    async with open_function_runtime(library(MIX), f"cpu:{NUM_DEVICES}") as runtime:
        options = InstantiateOptions(target, is_multi_device=True, input_devices=inputs, output_devices=outputs)
        devices = await placed(runtime, options)
    assert (devices["x"], devices["y"]) == inputs
    assert tuple(devices[f"{name}_RetVal"] for name in ("sum", "product", "same")) == outputs
    assert devices["add"] == NAMES[3]


async def test_results_stay_where_they_are_made() -> None:
    """By request of the node, or where the argument is that is passed on; others are placed beside the target."""
    async with open_function_runtime(library(MIX), f"cpu:{NUM_DEVICES}") as runtime:
        options = InstantiateOptions(NAMES[2], is_multi_device=True, input_devices=(NAMES[1], NAMES[0]))
        devices = await placed(runtime, options)
    assert devices["sum_RetVal"] == devices["add"] == NAMES[3]
    assert devices["same_RetVal"] == devices["y"] == NAMES[0]
    assert devices["product_RetVal"] == devices["mul"] == NAMES[2]


async def test_a_device_may_be_left_to_the_placer() -> None:
    """An empty name is none; without names of inputs they are on the target."""
    async with open_function_runtime(library(MIX), f"cpu:{NUM_DEVICES}") as runtime:
        options = InstantiateOptions(NAMES[1], is_multi_device=True, output_devices=(NAMES[2], "", NAMES[3]))
        devices = await placed(runtime, options)
    assert (devices["x"], devices["y"]) == (NAMES[1], NAMES[1])
    assert [devices[f"{name}_RetVal"] for name in ("sum", "product", "same")] == [NAMES[2], NAMES[1], NAMES[3]]


@pytest.mark.parametrize("num_inputs", [0, 1, 3])
async def test_every_argument_has_a_device(num_inputs: int) -> None:
    """In TensorFlow's words; also where the function is instantiated already."""
    async with open_function_runtime(library(MIX), f"cpu:{NUM_DEVICES}") as runtime:
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
    async with open_function_runtime(library(MIX), f"cpu:{NUM_DEVICES}") as runtime:
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
    async with open_function_runtime(library(MIX), f"cpu:{NUM_DEVICES}") as runtime:
        with pytest.raises(InvalidArgumentError, match=message):
            runtime.instantiate("Mix", options=options)


async def test_devices_tell_instantiations_apart() -> None:
    """However a device is spelled."""
    async with open_function_runtime(library(MIX), f"cpu:{NUM_DEVICES}") as runtime:

        def handle(inputs: tuple[str, ...] | None, outputs: tuple[str, ...] = ()) -> int:
            options = InstantiateOptions(is_multi_device=True, input_devices=inputs, output_devices=outputs)
            return runtime.instantiate("Mix", options=options)

        first = handle((NAMES[1], NAMES[2]))
        assert handle(("cpu:1", runtime.cluster.names[2])) == first
        others = [handle(None), handle((NAMES[2], NAMES[1])), handle((NAMES[1], NAMES[2]), (NAMES[0],) * 3)]
        assert len({first, *others}) == 4
