"""Which outputs of nodes can never travel between processes: so that a step is refused before it runs.

    TensorArrayV3    output 0, a resource      "a tensor array or a stack"
    RangeDataset     output 0, a variant       "a dataset"
    FIFOQueueV2      output 0, a resource      None: a handle of something that has a device and a name
    Identity         output 0, a resource      None: whatever its input is

It follows from what the op makes: a resource that has no name is carried by its tensors, and so are the arrays and
stacks of a step and what datasets and mutexes give. What comes out of an op that passes tensors on, or that returns
elements of some container, is known when it is sent; it arrives as `NotSent` then.
"""

from __future__ import annotations

from ...graph.dtypes import DataType, base_type
from ...graph.ops.properties import NodeProperties
from ...graph.ops.record import State
from ...graph.ops.registry import ArgDef
from ...graph.ops.type_inference import name_ranges

_NAME = "shared_name"  # the attr with the name of what the op makes
_HANDLE_TYPES = (DataType.RESOURCE, DataType.STRING)  # handles of tensor arrays and stacks have either


def refused_kind(properties: NodeProperties, output: int) -> str | None:
    """What an output of a node is that cannot leave its process, for an error ("a dataset"); None if it can travel."""
    arg = _declared(properties, output)
    if arg is None:
        return None
    record, dtype = properties.op_def.record, base_type(arg.type)
    if record.state is State.LIST:
        return "a tensor array or a stack" if dtype in _HANDLE_TYPES else None
    if dtype is DataType.RESOURCE:
        return _object_of(record.state) if _makes_nameless(properties) else None
    if dtype is not DataType.VARIANT:
        return None
    if record.state is State.QUEUE:
        return "the lock of a mutex"
    if record.family == "datasets" and not record.waits:  # those that wait give elements
        return "a dataset" if len(properties.output_types) == 1 else _object_of(record.state)
    return None


def _declared(properties: NodeProperties, output: int) -> ArgDef | None:
    """The argument that declares an output, if the op alone fixes its type."""
    _, ranges = name_ranges(properties.op_def, properties.attrs)
    for arg in properties.op_def.output_args:
        if output in ranges[arg.name]:
            return arg if arg.type is not DataType.INVALID else None
    return None


def _makes_nameless(properties: NodeProperties) -> bool:
    """Whether the resource that an op makes has no name: neither an attr nor a text says one, nor does the session."""
    signature = properties.op_def
    is_told = any(arg.type in (DataType.STRING, DataType.RESOURCE) for arg in signature.input_args)
    return not (_NAME in signature.attrs or is_told or signature.record.state is State.SESSION)


def _object_of(state: State | None) -> str:
    """A resource without a name, by the kind of state that its op makes."""
    if state is State.ITERATOR:
        return "an iterator, a cache or a generator without a name"
    return "a table without a name" if state is State.TABLE else "an object without a name"
