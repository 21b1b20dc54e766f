"""Writes costs of single ops by TensorFlow's cost estimator, which the Grappler source has to equal.

    python tools/make_grappler_costs.py tests/devices/timing/costs/data/grappler_costs.json   (needs TensorFlow)

The slow device does one operation and moves one byte per microsecond, so that its costs are counts; the others have odd
rates. Each op is measured alone, on a virtual cluster, behind placeholders of known shapes.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf import device_properties_pb2
from tensorflow.python.framework import op_def_registry, tensor_util, versions
from tensorflow.python.grappler import cluster, item

Tensor = tuple[str, list[int]] | tuple[str, list[int], Any]  # type, shape, value of a constant
Case = tuple[str, dict[str, Any], list[Tensor]]

DEVICES: dict[str, dict[str, Any]] = {
    "slow": {"type": "CPU", "frequency": 1, "num_cores": 1, "bandwidth": 1000, "architecture": None},
    "cpu": {"type": "CPU", "frequency": 13, "num_cores": 7, "bandwidth": 12_347, "architecture": None},
    "gpu": {"type": "GPU", "frequency": 3, "num_cores": 7, "bandwidth": 731_999, "architecture": "10.0"},
}
FLOAT_UNARY = (
    "Acos Asin Atan Ceil Cos Erf Erfc Exp Expm1 Floor Inv Lgamma Log Log1p Neg Reciprocal Relu Relu6 Rint Round Rsqrt "
    "Sigmoid Sign Sin Sqrt Square Tan Tanh Softplus Selu Elu Cosh Identity Shape ZerosLike StopGradient Snapshot Rank "
    "LeakyRelu"
)
FLOAT_BINARY = (
    "Add AddV2 Sub Mul Div RealDiv Maximum Minimum SquaredDifference Atan2 FloorDiv FloorMod Mod TruncateMod Less "
    "LessEqual Greater GreaterEqual Equal NotEqual Pow DivNoNan TruncateDiv"
)
EINSUMS: list[tuple[str, list[list[int]]]] = [
    ("ij,jk->ik", [[5, 3], [3, 7]]),
    ("bij,bkj->bik", [[2, 5, 3], [2, 7, 3]]),
    ("bihd,hdk->bik", [[2, 5, 4, 3], [4, 3, 7]]),
    ("bfnh,btnh->bnft", [[2, 5, 4, 3], [2, 6, 4, 3]]),
    ("abc,cde->abde", [[2, 5, 3], [3, 4, 7]]),
    ("ij,kl->ijkl", [[3, 4], [5, 6]]),
    ("ij,ij->", [[3, 4], [3, 4]]),
    ("ij,ij->ij", [[3, 4], [3, 4]]),
    ("aij,aj->ai", [[2, 3, 4], [2, 4]]),
    ("iJ,Jk->ik", [[3, 4], [4, 5]]),
    ("ij,j->i", [[3, 4], [4]]),
    ("i,j->ij", [[3], [4]]),
    ("ijk,jl->il", [[2, 3, 4], [3, 5]]),
    ("ij,jk->", [[3, 4], [4, 5]]),
    ("...ij,...jk->...ik", [[2, 3, 4], [2, 4, 5]]),
    ("ii,ij->ij", [[3, 3], [3, 4]]),
    ("ij->ji", [[3, 4]]),
    ("ij,jk->iik", [[3, 4], [4, 5]]),
]


def const(values: list[int] | int, dtype: str = "int32") -> Tensor:
    """A constant of integers."""
    return dtype, [len(values)] if isinstance(values, list) else [], values


def elementwise(rng: random.Random) -> Iterator[Case]:
    """Ops that compute each element apart, and reductions."""
    for op in FLOAT_UNARY.split():
        yield op, {"T": "float"}, [("float", [rng.randint(1, 40), rng.randint(1, 40)])]
    for op in FLOAT_BINARY.split():
        for a, b in (([7, 5], [7, 5]), ([3, 1], [2, 1, 4]), ([6, 11], [])):
            yield op, {"T": "float"}, [("float", a), ("float", b)]
    for dtype in ("int32", "int64", "double", "half", "bfloat16", "complex64"):
        yield "Mul", {"T": dtype}, [(dtype, [13, 3]), (dtype, [3])]
        yield "Cast", {"SrcT": dtype, "DstT": "float"}, [(dtype, [13, 3])]
    for op in ("LogicalAnd", "LogicalOr"):
        yield op, {}, [("bool", [9, 4]), ("bool", [4])]
    yield "LogicalNot", {}, [("bool", [9, 4])]
    for op in ("Sum", "Mean", "Max", "Min", "Prod"):
        yield op, {"T": "float", "Tidx": "int32"}, [("float", [6, 5, 4]), const([0, 2])]
        yield op, {"T": "float", "Tidx": "int32"}, [("float", [4, 1]), const([0, 1])]
    for op in ("All", "Any"):
        yield op, {"Tidx": "int32"}, [("bool", [6, 5]), const([1])]
    for op in ("ArgMax", "ArgMin"):
        yield op, {"T": "float"}, [("float", [6, 5]), const(1)]
    yield "TopKV2", {"T": "float"}, [("float", [6, 5]), const(3)]
    for count in (1, 2, 5):
        yield "AddN", {"T": "float", "N": count}, [("float", [6, 5])] * count
    for shape in ([3, 5], [11], [2, 3, 11], [4, 2, 3, 5]):
        yield "Softmax", {"T": "float"}, [("float", shape)]
        yield "LogSoftmax", {"T": "float"}, [("float", shape)]
    yield "BiasAdd", {"T": "float"}, [("float", [2, 8, 9, 64]), ("float", [64])]
    yield "BiasAdd", {"T": "float", "data_format": "NCHW"}, [("float", [2, 64, 8, 9]), ("float", [64])]
    yield "BiasAddGrad", {"T": "float"}, [("float", [2, 8, 9, 64])]
    yield "ReluGrad", {"T": "float"}, [("float", [9, 64])] * 2
    yield "Select", {"T": "float"}, [("bool", [4]), ("float", [4, 3]), ("float", [4, 3])]
    yield "SelectV2", {"T": "float"}, [("bool", [4, 1]), ("float", [1, 3]), ("float", [])]
    yield "Add", {"T": "float"}, [("float", [0, 5]), ("float", [5])]
    yield "Dequantize", {"T": "quint8"}, [("quint8", [4, 6]), ("float", []), ("float", [])]
    yield "QuantizeV2", {"T": "quint8"}, [("float", [4, 6]), ("float", []), ("float", [])]
    yield "QuantizeAndDequantizeV2", {"T": "float"}, [("float", [4, 6]), ("float", []), ("float", [])]
    yield "QuantizeAndDequantizeV4", {"T": "float"}, [("float", [4, 6]), ("float", []), ("float", [])]
    yield "InvGrad", {"T": "float"}, [("float", [4, 6])] * 2
    limits: list[Tensor] = [("float", [])] * 4
    for op, second, types in (
        ("QuantizedAdd", [4, 6], {"Toutput": "qint32"}),
        ("QuantizedMul", [6], {"Toutput": "qint32"}),
        ("QuantizedBiasAdd", [6], {"out_type": "qint32"}),
    ):
        yield op, {"T1": "quint8", "T2": "quint8", **types}, [("quint8", [4, 6]), ("quint8", second), *limits]
    yield "ApproximateEqual", {"T": "float"}, [("float", [4, 6])] * 2


def products(rng: random.Random) -> Iterator[Case]:
    """Products of matrices."""
    for _ in range(12):
        m, n, k = (rng.randint(1, 300) for _ in range(3))
        ta, tb = rng.random() < 0.5, rng.random() < 0.5
        a, b = [k, m] if ta else [m, k], [n, k] if tb else [k, n]
        dtype = rng.choice(["float", "half", "double"])
        yield "MatMul", {"T": dtype, "transpose_a": ta, "transpose_b": tb}, [(dtype, a), (dtype, b)]
        batch = [rng.randint(1, 6)]
        yield "BatchMatMul", {"T": dtype, "adj_x": ta, "adj_y": tb}, [(dtype, batch + a), (dtype, batch + b)]
        wide = [rng.randint(1, 4), *rng.choice([batch, [1]])]
        yield "BatchMatMulV2", {"T": dtype, "adj_x": ta, "adj_y": tb}, [(dtype, wide + a), (dtype, batch + b)]
        yield (
            "BatchMatMulV3",
            {"Ta": dtype, "Tb": dtype, "Tout": dtype, "adj_x": ta, "adj_y": tb},
            [(dtype, batch + a), (dtype, batch + b)],
        )
    yield "MatMul", {"T": "float"}, [("float", [0, 5]), ("float", [5, 6])]
    yield "SparseMatMul", {"transpose_a": True}, [("float", [3, 5]), ("float", [3, 7])]
    for equation, shapes in EINSUMS:
        yield "Einsum", {"T": "float", "N": len(shapes), "equation": equation}, [("float", shape) for shape in shapes]
    yield "XlaEinsum", {"T": "float", "equation": "bij,bjk->bik"}, [("float", [2, 5, 3]), ("float", [2, 3, 7])]
    for adjoint in (False, True):
        shape = [3, 5] if adjoint else [5, 3]
        sparse = [("int64", [9, 2]), ("float", [9]), const(shape, "int64"), ("float", [3, 7])]
        yield "SparseTensorDenseMatMul", {"T": "float", "adjoint_a": adjoint}, sparse
    quantized: list[Tensor] = [("quint8", [5, 3]), ("quint8", [3, 7]), *[("float", [])] * 4]  # type: ignore[list-item]
    types = {"T1": "quint8", "T2": "quint8", "Toutput": "qint32", "Tactivation": "quint8"}
    yield "QuantizedMatMul", types, quantized


def convolutions(rng: random.Random) -> Iterator[Case]:
    """Convolutions and their gradients, in both layouts."""
    for _ in range(14):
        layout = rng.choice(["NHWC", "NCHW"])
        n, h, w, c, k = (
            rng.randint(1, 4),
            rng.randint(7, 30),
            rng.randint(7, 30),
            rng.randint(1, 9),
            rng.randint(1, 9),
        )
        r, s, stride, padding = rng.randint(1, 6), rng.randint(1, 6), rng.randint(1, 3), rng.choice(["SAME", "VALID"])
        p, q = (
            -(-size // stride) if padding == "SAME" else (size - window) // stride + 1
            for size, window in ((h, r), (w, s))
        )

        def placed(height: int, width: int, depth: int, n: int = n, layout: str = layout) -> list[int]:
            return [n, height, width, depth] if layout == "NHWC" else [n, depth, height, width]

        strides = [1, stride, stride, 1] if layout == "NHWC" else [1, 1, stride, stride]
        attrs = {"T": "float", "strides": strides, "padding": padding, "data_format": layout}
        image, kernel, result = placed(h, w, c), [r, s, c, k], placed(p, q, k)
        yield "Conv2D", attrs, [("float", image), ("float", kernel)]
        yield "Conv2DBackpropInput", attrs, [const(image), ("float", kernel), ("float", result)]
        yield "Conv2DBackpropFilter", attrs, [("float", image), const(kernel), ("float", result)]
        deep = placed(p, q, c * k)
        op = "DepthwiseConv2dNative"
        yield op, attrs, [("float", image), ("float", kernel)]
        yield f"{op}BackpropInput", attrs, [const(image), ("float", kernel), ("float", deep)]
        yield f"{op}BackpropFilter", attrs, [("float", image), const(kernel), ("float", deep)]
    attrs = {"T": "half", "strides": [1, 1, 1, 1], "padding": "VALID", "dilations": [1, 2, 2, 1]}
    yield "Conv2D", attrs, [("half", [2, 8, 9, 6]), ("half", [3, 2, 3, 8])]
    attrs = {
        "T": "float",
        "strides": [1, 1, 1, 1],
        "padding": "EXPLICIT",
        "explicit_paddings": [0, 0, 1, 2, 3, 0, 0, 0],
    }
    yield "Conv2D", attrs, [("float", [2, 8, 9, 3]), ("float", [3, 2, 3, 7])]
    attrs = {"T": "float", "strides": [1, 1, 1, 1, 1], "padding": "SAME"}
    yield "Conv3D", attrs, [("float", [2, 4, 8, 8, 3]), ("float", [3, 3, 3, 3, 7])]


def pools(rng: random.Random) -> Iterator[Case]:
    """Pools, batch normalisation and gradients."""
    for _ in range(16):
        layout, padding = rng.choice(["NHWC", "NCHW"]), rng.choice(["SAME", "VALID"])
        n, h, w, c = rng.randint(1, 4), rng.randint(7, 30), rng.randint(7, 30), rng.randint(1, 9)
        window, strides = [rng.randint(1, 4), rng.randint(1, 4)], [rng.randint(1, 4), rng.randint(1, 4)]
        sizes = [
            -(-size // stride) if padding == "SAME" else (size - side) // stride + 1
            for size, side, stride in zip((h, w), window, strides, strict=True)
        ]

        def placed(pair: list[int], depth: int, first: int = 1, layout: str = layout) -> list[int]:
            return [first, *pair, depth] if layout == "NHWC" else [first, depth, *pair]

        attrs = {"T": "float", "ksize": placed(window, 1), "strides": placed(strides, 1), "padding": padding}
        attrs["data_format"] = layout
        image, pooled = placed([h, w], c, n), placed(sizes, c, n)
        for op in ("MaxPool", "AvgPool"):
            yield op, attrs, [("float", image)]
        yield "MaxPoolGrad", attrs, [("float", image), ("float", pooled), ("float", pooled)]
        yield "AvgPoolGrad", attrs, [const(image), ("float", pooled)]
        channels: list[Tensor] = [("float", [c])] * 4
        moments = {"T": "float", "data_format": layout}
        for training in (True, False):
            yield "FusedBatchNorm", {**moments, "is_training": training}, [("float", image), *channels]
        yield "FusedBatchNormGrad", moments, [("float", image), ("float", image), *channels[:3]]
    yield "FusedBatchNormV2", {"T": "half", "U": "float"}, [("half", [2, 8, 9, 3]), *[("float", [3])] * 4]  # type: ignore[list-item]
    v3: list[Tensor] = [("float", [2, 8, 9, 3])] * 2 + [("float", [3])] * 4
    yield "FusedBatchNormGradV3", {"T": "float", "U": "float"}, v3


def picks(rng: random.Random) -> Iterator[Case]:
    """Gathers, slices, scatters, images."""
    for _ in range(4):
        rows, columns, count = (rng.randint(2, 30) for _ in range(3))
        types = {"Tparams": "float", "Tindices": "int64"}
        yield "Gather", types, [("float", [rows, columns]), ("int64", [count])]
        yield "GatherV2", {**types, "Taxis": "int32"}, [("float", [rows, columns]), ("int64", [count]), const(1)]
        yield "GatherNd", types, [("float", [rows, columns, 3]), ("int64", [count, 2])]
        begin, size = [1, 0], [rows - 1, columns]
        yield "Slice", {"T": "float", "Index": "int32"}, [("float", [rows, columns]), const(begin), const(size)]
        strided = [("float", [rows, columns]), const(begin), const([rows, columns]), const([1, 2])]
        yield "StridedSlice", {"T": "float", "Index": "int32"}, strided
        for kind in ("Add", "Sub", "Mul", "Div", "Min", "Max", "Update"):
            updates = [count, columns] if kind == "Update" or rng.random() < 0.6 else []
            scattered: list[Tensor] = [("float_ref", [rows, columns]), ("int32", [count]), ("float", updates)]
            yield f"Scatter{kind}", {"T": "float", "Tindices": "int32"}, scattered
        height, width = rng.randint(1, 20), rng.randint(1, 20)
        for half in (False, True):
            image: list[Tensor] = [("float", [2, rows, columns, 3]), const([height, width])]
            yield "ResizeBilinear", {"T": "float", "half_pixel_centers": half}, image
        for method in ("bilinear", "nearest"):
            boxes: list[Tensor] = [("float", [2, rows, columns, 3]), ("float", [count, 4]), ("int32", [count])]
            yield "CropAndResize", {"T": "float", "method": method}, [*boxes, const([height, width])]


def memory(_: random.Random) -> Iterator[Case]:
    """Ops that compute nothing, and some that cost nothing."""
    x: Tensor = ("float", [33, 44])
    yield "ConcatV2", {"T": "float", "N": 2, "Tidx": "int32"}, [x, x, const(1)]
    yield "Split", {"T": "float", "num_split": 4}, [const(1), x]
    yield "Transpose", {"T": "float", "Tperm": "int32"}, [x, const([1, 0])]
    yield "Fill", {"T": "float", "index_type": "int32"}, [const([33, 44]), ("float", [])]
    yield "Pack", {"T": "float", "N": 2}, [x, x]
    yield "Tile", {"T": "float", "Tmultiples": "int32"}, [x, const([2, 3])]
    yield "Pad", {"T": "float", "Tpaddings": "int32"}, [x, ("int32", [2, 2], [[1, 1], [2, 0]])]
    yield "ExpandDims", {"T": "float", "Tdim": "int32"}, [x, const(0)]
    yield "Reshape", {"T": "float", "Tshape": "int32"}, [x, const([44, 33])]
    yield "RandomUniform", {"T": "int32", "dtype": "float"}, [const([33, 44])]
    yield "Range", {"Tidx": "int32"}, [const(0), const(100), const(3)]
    yield "OneHot", {"T": "float", "TI": "int32"}, [("int32", [9]), const(5), ("float", []), ("float", [])]
    yield "Unpack", {"T": "float", "num": 33}, [x]
    yield "MatrixInverse", {"T": "float"}, [("float", [2, 9, 9])]
    yield "L2Loss", {"T": "float"}, [x]
    yield "Cumsum", {"T": "float", "Tidx": "int32"}, [x, const(0)]
    yield "SoftmaxCrossEntropyWithLogits", {"T": "float"}, [x, x]
    yield "Assign", {"T": "float"}, [("float_ref", [33, 44]), x]
    yield "AssignVariableOp", {"dtype": "float"}, [("resource", []), x]
    yield "AssignAddVariableOp", {"dtype": "float"}, [("resource", []), x]
    yield "AssignSubVariableOp", {"dtype": "float"}, [("resource", []), x]
    yield "ApplyGradientDescent", {"T": "float"}, [("float_ref", [33, 44]), ("float", []), x]
    yield "ResourceApplyGradientDescent", {"T": "float"}, [("resource", []), ("float", []), x]
    momentum: list[Tensor] = [("resource", []), ("resource", []), ("float", []), x, ("float", [])]
    yield "ResourceApplyMomentum", {"T": "float"}, momentum
    yield "IdentityN", {"T": ["float", "int32"]}, [x, ("int32", [7])]
    yield "ShapeN", {"T": "float", "N": 2, "out_type": "int32"}, [x, x]
    yield "Size", {"T": "float"}, [x]
    yield "PreventGradient", {"T": "float"}, [x]
    yield "VariableV2", {"dtype": "float", "shape": [33, 44]}, []
    yield "VarHandleOp", {"dtype": "float", "shape": [33, 44]}, []
    yield "Placeholder", {"dtype": "float", "shape": [33, 44]}, []
    yield "NoOp", {}, []
    yield "StringJoin", {"N": 2}, [("string", [9]), ("string", [9])]
    yield "QueueEnqueueV2", {"Tcomponents": ["float"]}, [("resource", []), x]
    yield "QueueEnqueue", {"Tcomponents": ["float"]}, [("string_ref", []), x]
    yield "InfeedEnqueue", {"dtype": "float", "shape": [33, 44]}, [x]
    yield "OutfeedEnqueue", {"dtype": "float"}, [x]
    yield "InfeedEnqueueTuple", {"dtypes": ["float", "half"], "shapes": [[33, 44], [7]]}, [x, ("half", [7])]
    yield "OutfeedEnqueueTuple", {"dtypes": ["float", "half"]}, [x, ("half", [7])]


def shape_proto(shape: list[int]) -> Any:
    """The message of a shape."""
    return tf.TensorShape(shape).as_proto()


def fill(node: Any, name: str, kind: str, value: Any) -> None:
    """Sets an attr of a NodeDef."""
    attr = node.attr[name]
    if kind.startswith("list("):
        fields = {"list(int)": attr.list.i, "list(type)": attr.list.type, "list(shape)": attr.list.shape}
        written = {"list(type)": lambda v: tf.as_dtype(v).as_datatype_enum, "list(shape)": shape_proto}
        fields[kind].extend(map(written.get(kind, int), value))
    elif kind == "type":
        attr.type = tf.as_dtype(value).as_datatype_enum
    elif kind == "shape":
        attr.shape.CopyFrom(shape_proto(value))
    elif kind == "string":
        attr.s = value.encode()
    else:
        setattr(attr, {"int": "i", "bool": "b", "float": "f"}[kind], value)


def graph_of(case: Case, device: str) -> Any:
    """A GraphDef of the op `case`, behind placeholders, constants and variables."""
    op, attrs, inputs = case
    graph = tf.compat.v1.GraphDef()
    graph.versions.producer = versions.GRAPH_DEF_VERSION
    names = []
    for number, (dtype, shape, *value) in enumerate(inputs):
        source = graph.node.add(name=f"in{number}", device=device)
        source.op = "Const" if value else "VariableV2" if dtype.endswith("_ref") else "Placeholder"
        base = tf.as_dtype(dtype.removesuffix("_ref"))
        source.attr["dtype"].type = base.as_datatype_enum
        if value:
            source.attr["value"].tensor.CopyFrom(tensor_util.make_tensor_proto(np.array(value[0]), dtype=base))
        else:
            fill(source, "shape", "shape", shape)
        names.append(source.name)
    node = graph.node.add(name="case", op=op, device=device, input=names)
    for attr in op_def_registry.get(op).attr:
        if attr.name in attrs:
            fill(node, attr.name, attr.type, attrs[attr.name])
        elif attr.HasField("default_value"):
            node.attr[attr.name].CopyFrom(attr.default_value)
    return graph


def outputs_of(graph: Any) -> list[Tensor]:
    """Types and shapes of the outputs by TensorFlow's inference, all sizes known."""
    with tf.Graph().as_default() as imported:
        tf.import_graph_def(graph, name="")
        outputs = imported.get_operation_by_name("case").outputs
    return [(tensor.dtype.name, tensor.shape.as_list()) for tensor in outputs]


def costs_of(graph: Any, virtual: cluster.Cluster) -> list[int]:
    """Microseconds: the cost, its arithmetic, its memory traffic."""
    meta = tf.compat.v1.MetaGraphDef(graph_def=graph)
    meta.collection_def["train_op"].node_list.value.append("case")
    op = next(op for op in virtual.MeasureCosts(item.Item(meta))[0] if op.node == "case")
    return [ns // 1000 for ns in (op.compute_cost, op.compute_time, op.memory_time)]


def virtual_cluster(numbers: dict[str, Any]) -> cluster.Cluster:
    """A cluster of one device with those properties."""
    numbers = dict(numbers)
    architecture = numbers.pop("architecture")
    properties = device_properties_pb2.DeviceProperties(memory_size=2**40, **numbers)
    if architecture is not None:
        properties.environment["architecture"] = architecture
    name = f"/{numbers['type']}:0"
    return cluster.Cluster(devices=[device_properties_pb2.NamedDevice(name=name, properties=properties)])


def main(path: str) -> None:
    """Writes the file."""
    rng = random.Random(11)
    families = (elementwise, products, convolutions, pools, picks, memory)
    cases = [case for family in families for case in family(rng)]
    virtual = {name: virtual_cluster(numbers) for name, numbers in DEVICES.items()}
    rows = []
    for case in cases:
        op, attrs, inputs = case
        outputs = outputs_of(graph_of(case, ""))
        costs = {
            name: costs_of(graph_of(case, f"/device:{DEVICES[name]['type']}:0"), each) for name, each in virtual.items()
        }
        rows.append({"op": op, "attrs": attrs, "inputs": [t[:2] for t in inputs], "outputs": outputs, "us": costs})
    head = f'{{"tensorflow": "{tf.__version__}",\n"devices": {json.dumps(DEVICES)},\n"cases": [\n'
    Path(path).write_text(head + ",\n".join(map(json.dumps, rows)) + "\n]}\n")


if __name__ == "__main__":
    main(sys.argv[1])
