"""What a device keeps from step to step: variables, other resources, and the generators of its nodes.

There is one object per (container, type, name). An assignment replaces the array of a variable and does not write into
it, so a value read before stays as it was. Objects that live for one step (stacks, tensor arrays) are not here: tensors
of the step carry them (`kernels/carried.py`).

    Variable, as both reference and resource variables use it:
        value None --assign--> value Array --assign--> value Array ...
        (uninitialised: `read` raises)     --destroy--> removed from the state (resource variables only)
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field
from itertools import count
from typing import Any, cast

import numpy as np

from ..errors import FailedPreconditionError, InternalError, InvalidArgumentError, NotFoundError
from ..graph.dtypes import Array, DataType, Shape, dtype_name, make_ref

DEFAULT_CONTAINER = "localhost"
VARIABLE_TYPE = "N10tensorflow3VarE"  # TensorFlow's name for the class of resource variables, used in messages
REFERENCE_VARIABLE_TYPE = "LegacyVar"
TENSOR_HANDLE = "TensorHandle"  # TensorFlow's name for the type, and the container, of handles of session tensors

ResourceKey = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class ResourceHandle:
    """The value of a resource tensor: device and name of a resource, not the resource itself."""

    device: str
    container: str
    name: str
    type_name: str
    key: ResourceKey = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", (self.container, self.type_name, self.name))


def handle_array(handle: ResourceHandle) -> Array:
    """The 0-d object array that carries `handle` along an edge."""
    array = np.empty((), object)
    array[()] = handle
    return array


def handle_of(value: Array | ResourceHandle) -> ResourceHandle:
    """The handle that a resource tensor carries; InvalidArgumentError unless it carries exactly one."""
    handle = value.item() if isinstance(value, np.ndarray) and value.size == 1 else value
    if not isinstance(handle, ResourceHandle):
        raise InvalidArgumentError(f"{value!r} is not a resource handle; feed the output of an op that makes one")
    return handle


class Variable:
    """A named array that kernels replace.

    `value` is None until the first assignment; `shape` is the declared shape, which an assignment may change.
    """

    __slots__ = ("dtype", "name", "shape", "value")

    def __init__(self, name: str, dtype: DataType, value: Array | None = None, shape: Shape = None) -> None:
        self.name = name
        self.dtype = dtype
        self.value = value
        self.shape = shape

    def __repr__(self) -> str:
        return f"Variable({self.name!r}, {self.dtype.name}, value={self.value!r})"

    def read(self) -> Array:
        """The current array; FailedPreconditionError before the first assignment."""
        if self.value is None:
            raise FailedPreconditionError(f"Attempting to use uninitialized value {self.name}")
        return self.value


def reference_key(container: str, name: str) -> ResourceKey:
    """The key of a reference variable among the resources of a device."""
    return container or DEFAULT_CONTAINER, REFERENCE_VARIABLE_TYPE, name


class WaitingTensors:
    """The tensors that are held by calls which wait for others of their step, in all steps of a session."""

    __slots__ = ("bytes", "count", "most", "most_bytes")

    def __init__(self) -> None:
        self.count = self.bytes = 0
        """calls that wait now, and the sum of the sizes of what they hold"""
        self.most = self.most_bytes = 0
        """the largest of either so far"""

    def hold(self, size_bytes: int) -> Callable[[], None]:
        """Counts a call that holds so many bytes until the function is called that this returns; again does nothing."""
        held = [size_bytes]
        self.count += 1
        self.bytes += size_bytes
        self.most, self.most_bytes = max(self.most, self.count), max(self.most_bytes, self.bytes)

        def release() -> None:
            while held:
                self.count -= 1
                self.bytes -= held.pop()

        return release


class SessionTensors:
    """Tensors that a session keeps from step to step, by handle; all its devices share them.

    `waiting` counts those of steps that are held while a call waits for others.
    """

    __slots__ = ("_count", "_device_of", "_tensors", "waiting")

    def __init__(self) -> None:
        self.waiting = WaitingTensors()
        self._count = 0
        self._tensors: dict[str, Array] = {}
        self._device_of: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self._tensors)

    def add(self, name: str, device: str, value: Array) -> str:
        """Keeps a tensor and returns its handle: name, number and device."""
        handle = f"{name};{self._count};{device}"
        self._count += 1
        self._tensors[handle], self._device_of[handle] = value, device
        return handle

    def get(self, handle: str) -> Array:
        """The tensor of a handle; InvalidArgumentError for an unknown handle."""
        value = self._tensors.get(handle)
        if value is None:
            raise InvalidArgumentError(f"The tensor with handle '{handle}' is not in the session store.")
        return value

    def delete(self, handle: str) -> None:
        """Removes the tensor of a handle; InvalidArgumentError for an unknown handle."""
        self.get(handle)
        del self._tensors[handle], self._device_of[handle]

    def forget(self, device: str) -> None:
        """Removes all tensors of a device."""
        for handle in [handle for handle, of in self._device_of.items() if of == device]:
            self.delete(handle)


class NodeGenerators:
    """The generators and counters of nodes, by path, and the seed from which nodes without seeds of their own draw."""

    __slots__ = ("by_path", "seed")

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.by_path: dict[str, object] = {}


class DeviceState:
    """The resources and generators of one device, and the tensors that the session keeps for all devices.

    The nodes of a called function have generators of their own for each call that names it: they are kept by path, that
    is, `site`, then the name of the node. The path is the name that the node gets when the call is inlined.
    `OpRecord.is_per_node` says which ops have any; a resource without a name belongs to the function and the node
    instead, whoever calls.

    `seed` makes random ops without a seed of their own repeatable: what they draw then depends on `seed` and on the
    path of the node, not on the device or on the order of execution. None draws a seed from the operating system.
    """

    __slots__ = (
        "_function",
        "_generators",
        "_numbers",
        "_private",
        "containers",
        "resources",
        "session_tensors",
        "site",
    )

    def __init__(self, seed: int | None = None, session_tensors: SessionTensors | None = None) -> None:
        self._generators = NodeGenerators(secrets.randbits(63) if seed is None else seed)
        self.site = ""  # the path of the call whose function is being compiled, with "/" behind it
        self.session_tensors = SessionTensors() if session_tensors is None else session_tensors
        self.resources: dict[ResourceKey, object] = {}
        self.containers: set[str] = set()  # all that ever held something: a message about an unknown one differs
        self._function = ""  # whose nodes are being compiled; "" for the graph itself
        self._private: dict[tuple[str, str], str] = {}
        self._numbers = count()  # of private resources

    @property
    def seed(self) -> int:
        """From which the nodes without seeds of their own draw."""
        return self._generators.seed

    def within(self, site: str, function: str) -> DeviceState:
        """The same state for the nodes of a function that is called from `site`, a path that ends in "/", or ""."""
        state = copy(self)
        state.site, state._function = site, function
        return state

    def sibling(self) -> DeviceState:
        """A state with the same resources; its random generators begin anew, and its private resources are its own."""
        other = DeviceState(self.seed, self.session_tensors)
        other.resources, other.containers, other._numbers = self.resources, self.containers, self._numbers
        return other

    def with_own_generators(self) -> DeviceState:
        """The same resources, with random generators apart; `restart_generators` begins them."""
        state = copy(self)
        state._generators = NodeGenerators(self.seed)
        return state

    def restart_generators(self, seed: int) -> None:
        """Forgets all random generators; nodes without seeds will draw by this one."""
        self._generators.by_path.clear()
        self._generators.seed = seed

    def random_words(self, name: str) -> tuple[int, int]:
        """Two 63-bit seeds for the generator of the node of that name."""
        words = np.random.SeedSequence([self.seed, *self.site.encode(), *name.encode()]).generate_state(2, np.uint64)
        first, second = (int(word) >> 1 for word in words)
        return first, second

    def private_name(self, node: str) -> str:
        """The name of a resource that only this node has, in all calls of its function: a number and its own name."""
        key = self._function, node
        name = self._private.get(key)
        if name is None:
            name = self._private[key] = f"_{next(self._numbers)}_{node}"
        return name

    def reset(self, container: str | None = None) -> None:
        """Removes the resources of `container`, or, without one, everything including the generators."""
        if container is None:
            self.resources.clear()
            self.containers.clear()
            self._generators.by_path.clear()
            return
        for key in [key for key in self.resources if key[0] == (container or DEFAULT_CONTAINER)]:
            del self.resources[key]

    def variable(self, container: str, name: str, dtype: DataType, shape: Shape = None) -> Variable:
        """The reference variable of that name, made on first use and uninitialised then.

        Raises InternalError, as TensorFlow does, when it exists with another element type.
        """
        key = reference_key(container, name)
        variable = cast(Variable, self.resource(key, lambda: Variable(name, dtype, shape=shape)))
        if variable.dtype != dtype:
            raise InternalError(
                f"Output 0 of type {dtype_name(make_ref(variable.dtype))} does not match declared output type "
                f"{dtype_name(make_ref(dtype))}; give variables of different types different names"
            )
        return variable

    def resource(self, key: ResourceKey, make: Callable[[], object] | None = None) -> Any:  # the caller knows the type
        """The resource under `key`; a missing one is made by `make`, or is a NotFoundError without `make`."""
        resource = self.resources.get(key)
        if resource is None:
            if make is None:
                raise NotFoundError(self._missing(key))
            self.containers.add(key[0])
            resource = self.resources.setdefault(key, make())
        return resource

    def _missing(self, key: ResourceKey) -> str:
        container, type_name, name = key
        if container not in self.containers:
            return f"Container {container} does not exist. (Could not find resource: {container}/{name})"
        return f"Resource {container}/{name}/{type_name} does not exist."

    def generator(self, node: str, make: Callable[[], object]) -> Any:  # the caller knows the generator's type
        """The generator of random numbers, or the counter, of `node`, made by `make` on first use."""
        generators, path = self._generators.by_path, self.site + node
        generator = generators.get(path)
        if generator is None:
            generator = generators.setdefault(path, make())
        return generator
