"""Measures single kernels and whole training steps on the GPU of this machine, with PyTorch, and prints them as CSV.

    python tools/measure_gpu.py ops > ops.csv              convolutions, rows, attention and steps: likewise

`ops` is a table that `partita calibrate` reads (docs/calibration.md), named by the TensorFlow ops that do the same;
the other tables have columns of sizes. A time is the median over five replays of a CUDA graph of many calls, divided by
their number, after warming up: no launch of the host is in it. Inputs are used in turn from up to 16 copies, of at most
256 MB in all, so that larger ones come from memory. `steps` are eager training steps (forward, backward, SGD with
momentum), medians of 20 after 10, host and launches included. The first lines say which GPU, driver and libraries it
was. Needs PyTorch with CUDA.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from typing import Any

import torch
import torchvision
from torch.nn import functional

NAMES = {torch.float32: "float32", torch.bfloat16: "bfloat16"}
TYPES = tuple(NAMES)
ARRAYS = [(16, 64), (64, 1024), (512, 1024), (2048, 4096), (8192, 4096), (8192, 16384), (65536, 64), (300, 777)]
COPIES_BYTES = 256_000_000
Row = tuple[list[object], torch.dtype, list[tuple[int, ...]], Callable[..., Any]]
"""the columns before the time, then what runs: element type and shapes of the inputs, and the function"""


def provenance() -> list[str]:
    """Comment lines: GPU, memory in total as the driver reports it, clocks, versions."""
    fields = "name,memory.total,driver_version,clocks.max.sm,clocks.max.memory,power.limit,ecc.mode.current"
    said = subprocess.run(
        ["nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader"], capture_output=True, text=True, check=True
    )
    properties = torch.cuda.get_device_properties(0)
    versions = f"torch {torch.__version__}, CUDA {torch.version.cuda}, cuDNN {torch.backends.cudnn.version()}"
    return [
        f"# nvidia-smi {fields}: {said.stdout.strip()}",
        f"# {properties.multi_processor_count} SMs, {properties.total_memory} bytes visible to CUDA; {versions}",
        f"# date {time.strftime('%Y-%m-%d')}, by tools/measure_gpu.py",
    ]


def kernel_ms(run: Callable[..., Any], shapes: list[tuple[int, ...]], dtype: torch.dtype) -> float:
    """Milliseconds of one call without its launch, inputs in memory."""
    sets = [[torch.randn(shape, device="cuda").to(dtype) for shape in shapes]]
    size = sum(x.numel() * x.element_size() for x in sets[0])
    sets += [[x.clone() for x in sets[0]] for _ in range(min(15, COPIES_BYTES // max(size, 1)))]
    for inputs in sets:
        run(*inputs)
    torch.cuda.synchronize()
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    run(*sets[0])
    end.record()
    torch.cuda.synchronize()
    calls = max(len(sets), min(200, int(10 / max(begin.elapsed_time(end), 0.005))))
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for number in range(calls):
            run(*sets[number % len(sets)])
    times = []
    for _ in range(6):
        begin.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) / calls)
    return statistics.median(times[1:])


def op_row(op: str, shapes: list[tuple[int, ...]], dtype: torch.dtype, run: Callable[..., Any]) -> Row:
    return [op, ";".join("x".join(map(str, shape)) for shape in shapes), NAMES[dtype]], dtype, shapes, run


def ops() -> Iterator[Row]:
    sizes = [1, 8, 64, 256, 1024, 4096, 8192]
    for m, n, k in product(sizes, [64, 512, 2048, 8192], [64, 512, 2048, 8192]):
        for dtype in TYPES:
            if 2 * m * n * k < 6e11 or dtype is torch.bfloat16:
                yield op_row("MatMul", [(m, k), (k, n)], dtype, torch.mm)
    for b, m, n, k in product([8, 96, 512], [64, 256, 1024], [64, 512], [64, 256]):
        for dtype in TYPES:
            yield op_row("BatchMatMulV2", [(b, m, k), (b, k, n)], dtype, torch.bmm)
    binary = {"AddV2": torch.add, "Mul": torch.mul, "RealDiv": torch.div, "Pow": torch.pow}
    unary = {"Relu": torch.relu, "Tanh": torch.tanh, "Exp": torch.exp, "Rsqrt": torch.rsqrt}
    for shape, dtype in product(ARRAYS, TYPES):
        for op, function in binary.items():
            yield op_row(op, [shape, shape], dtype, function)
        for op, function in unary.items():
            yield op_row(op, [shape], dtype, function)
        yield op_row("Softmax", [shape], dtype, partial(torch.softmax, dim=-1))
        yield op_row("BiasAdd", [shape, shape[-1:]], dtype, torch.add)


def rows() -> Iterator[Row]:
    """What is no op of TensorFlow, or has inputs that are no arrays: of each row, and a transposition."""
    for shape, dtype in product(ARRAYS, TYPES):
        kernels: dict[str, Callable[..., Any]] = {
            "gelu": functional.gelu,
            "layernorm": partial(functional.layer_norm, normalized_shape=shape[-1:]),
            "sum": partial(torch.sum, dim=-1),
            "transpose": lambda x: x.t().contiguous(),
        }
        for name, function in kernels.items():
            yield [name, NAMES[dtype], *shape], dtype, [shape], function


def convolutions() -> Iterator[Row]:
    """NCHW, padded to the same size, as ResNet, VGG and MobileNet have them; gradients of all but depthwise ones."""
    layers = [(7, 2, 3, 64, 224, 1), (3, 1, 3, 64, 224, 1), (3, 1, 64, 64, 56, 1), (1, 1, 64, 256, 56, 1)]
    layers += [(1, 1, 256, 64, 56, 1), (3, 2, 128, 128, 56, 1), (3, 1, 128, 128, 28, 1), (1, 1, 512, 128, 28, 1)]
    layers += [(3, 1, 256, 256, 14, 1), (1, 1, 1024, 256, 14, 1), (3, 1, 512, 512, 7, 1), (1, 2, 1024, 2048, 14, 1)]
    layers += [(3, 1, 512, 512, 28, 1), (5, 1, 96, 256, 27, 1), (3, 1, 384, 384, 13, 1), (3, 1, 96, 96, 56, 96)]
    for (kernel, stride, inputs, outputs, side, groups), batch, dtype in product(layers, [1, 8, 32, 128], TYPES):
        sizes = [NAMES[dtype], batch, inputs, outputs, kernel, side, stride, groups]
        image, weights = (batch, inputs, side, side), (outputs, inputs // groups, kernel, kernel)
        forward = partial(functional.conv2d, stride=stride, padding=kernel // 2, groups=groups)
        yield ["forward", *sizes], dtype, [image, weights], forward
        out = (side + 2 * (kernel // 2) - kernel) // stride + 1
        for direction in ("input", "filter") if groups == 1 else ():
            shapes = [(batch, outputs, out, out), image, weights]
            yield [direction, *sizes], dtype, shapes, convolution_gradient(stride, kernel, direction)


def convolution_gradient(stride: int, kernel: int, direction: str) -> Callable[..., Any]:
    wanted = [direction == "input", direction == "filter", False]
    places = [stride] * 2, [kernel // 2] * 2, [1, 1], False, [0, 0], 1
    return lambda dy, x, w: torch.ops.aten.convolution_backward(dy, x, w, None, *places, wanted)


def attention() -> Iterator[Row]:
    """Causal flash attention, then one token against a cache; `width` is that of a head."""
    attend = functional.scaled_dot_product_attention
    for sizes in product([1, 8], [16, 32], [128, 512, 1024, 2048, 4096, 8192], [64, 128]):
        batch, heads, _, width = sizes
        prefill = partial(attend, is_causal=True)
        yield ["prefill", "bfloat16", *sizes], torch.bfloat16, [sizes] * 3, prefill
        yield ["decode", "bfloat16", *sizes], torch.bfloat16, [(batch, heads, 1, width), sizes, sizes], attend


def print_kernels(columns: str, kernels: Iterator[Row]) -> None:
    print(columns)
    for said, dtype, shapes, run in kernels:
        print(*said, f"{kernel_ms(run, shapes, dtype):.6f}", sep=",", flush=True)


class Encoder(torch.nn.Module):
    """A BERT-like encoder over random embeddings; its loss is a mean of squares."""

    def __init__(self, width: int, layers: int) -> None:
        super().__init__()
        layer = torch.nn.TransformerEncoderLayer(width, width // 64, 4 * width, 0.0, "gelu", batch_first=True)
        self.layers = torch.nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)

    def forward(self, x: Any) -> Any:
        return self.layers(x)


def models() -> Iterator[tuple[str, torch.nn.Module, tuple[int, ...]]]:
    for name, batch in product(("resnet50", "vgg16", "alexnet", "mobilenet_v2"), (8, 32, 128)):
        yield name, torchvision.models.get_model(name, weights=None), (batch, 3, 224, 224)
    for layers, width, batch, tokens in ((12, 768, 8, 512), (24, 1024, 8, 512), (12, 768, 32, 128)):
        yield f"encoder_l{layers}_w{width}", Encoder(width, layers), (batch, tokens, width)


def step_ms(model: torch.nn.Module, x: Any) -> float:
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    times = []
    for _ in range(30):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        model(x).float().square().mean().backward()
        optimizer.step()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - begin)
    return 1000 * statistics.median(times[10:])


def print_steps() -> None:
    print("model,input,dtype,step_ms,peak_allocated_bytes")
    for name, model, shape in models():
        for dtype in TYPES:
            torch.cuda.reset_peak_memory_stats()
            moved = model.to("cuda", dtype).train()
            took = step_ms(moved, torch.randn(shape, device="cuda", dtype=dtype))
            said = f"{name},{'x'.join(map(str, shape))},{NAMES[dtype]},{took:.3f}"
            print(f"{said},{torch.cuda.max_memory_allocated()}", flush=True)


SIZES = "dtype,batch,in_channels,out_channels,kernel,size,stride,groups"
TABLES: dict[str, Callable[[], None]] = {
    "ops": lambda: print_kernels("op,shapes,dtype,latency_ms", ops()),
    "rows": lambda: print_kernels("kernel,dtype,rows,columns,latency_ms", rows()),
    "convolutions": lambda: print_kernels(f"direction,{SIZES},latency_ms", convolutions()),
    "attention": lambda: print_kernels("kind,dtype,batch,heads,tokens,width,latency_ms", attention()),
    "steps": print_steps,
}

if __name__ == "__main__":
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    print("\n".join(provenance()))
    TABLES[sys.argv[1]]()
