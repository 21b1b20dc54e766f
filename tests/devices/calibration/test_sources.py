"""Sources of measurements: which rows they give, which they refuse, and what is wrong with a file."""

from __future__ import annotations

from pathlib import Path

import pytest
from attrs import evolve

from partita.devices import device_spec
from partita.devices.calibration.calibrate import calibrate
from partita.devices.calibration.sources.measurements import (
    MeasuredLayer,
    TimedCollective,
    TimedMove,
    TimedProduct,
)
from partita.devices.calibration.sources.reading import read_source
from partita.errors import InvalidArgumentError

H100 = device_spec("H100-SXM")
LOG = """# Collective test starting: all_gather_perf
# nThread 1 nGpus 2 minBytes 1024 maxBytes 2048
#  Rank  0 Group  0 Pid 7 on rig device  0 [0x07] Example GPU
#  Rank  1 Group  0 Pid 7 on rig device  1 [0x0f] Example GPU
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
           0             0     float    none      -1     5.10    0.00    0.00      0     5.00    0.00    0.00      0
        1024           128     float    none      -1    12.50    0.08    0.04      0    12.10    0.08    0.04      0
        2048           256     float    none      -1    12.75    0.16    0.08      0    12.40    0.17    0.08      0
# Out of bounds values : 0 OK
"""


def _file(folder: Path, text: str, name: str = "rows.csv") -> Path:
    path = folder / name
    path.write_text(text, "utf-8")
    return path


def test_an_op_table_gives_products_and_moves(tmp_path: Path) -> None:
    """Transposes are read from attrs; ops bound by memory move their inputs and outputs; others are refused."""
    text = (
        "op,shapes,dtype,latency_ms,attrs\n"
        "MatMul,8x4;4x2,bfloat16,0.5,\n"
        'MatMul,8x4;2x4,bfloat16,0.5,"{""transpose_b"": true}"\n'
        "BatchMatMulV2,3x8x4;3x4x2,half,0.25,\n"
        'Einsum,3x8x4;3x4x2,bfloat16,0.25,"{""equation"": ""abc,acd->abd""}"\n'
        "AddV2,8x4;4,float32,0.125,\n"
        "AddN,8x4;8x4;8x4,half,0.25,\n"
        'Sum,8x4;1,float32,0.5,"{""_output_shapes"": [[8]]}"\n'
    )
    rows = read_source(_file(tmp_path, text), ["rig"], spec=H100)
    assert rows.products == (
        TimedProduct(8, 2, 4, 1, "NN", 5e5),
        TimedProduct(8, 2, 4, 1, "TN", 5e5),
        TimedProduct(8, 2, 4, 3, "NN", 2.5e5),
        TimedProduct(8, 2, 4, 3, "", 2.5e5),
    )
    assert rows.moves[0] == TimedMove((32 + 4 + 32) * 4, 1.25e5)
    assert [move.time_ns for move in rows.moves] == [1.25e5, 2.5e5, 5e5]
    assert [refused.reason for refused in rows.refused] == []


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ("MatMul,8x4;4x2,float32,0.5,", "of float: the fit is for two-byte floats"),
        ('Conv2D,1x8x8x4;3x3x4x2,bfloat16,0.5,"{""strides"": [1, 1, 1, 1], ""padding"": ""SAME""}"', "for products"),
        (
            'BatchMatMulV3,8x4;4x2,bfloat16,0.5,"{""Tout"": ""float""}"',
            "of bfloat16 and float: the fit is for two-byte floats",
        ),
        ("TopKV2,8;scalar,float32,0.5,", "the shapes of inputs do not tell those of outputs"),
        ("Cholesky,8x8,float32,0.5,", "Cholesky of these shapes is no single matrix product"),
        ("AsString,8x8,float32,0.5,", "nothing says how many bytes AsString moves"),
        ('Transpose,8x4;2,float32,0.5,"{""_output_shapes"": [[4, 8]]}"', "moves memory as 'permute' ops do"),
        ("Identity,8,float32,0.5,", "Identity only passes tensors on"),
        ("flash_attention,8x8,float32,0.5,", "'flash_attention' is no op of the registry"),
    ],
)
def test_ops_that_train_no_fit_are_refused_with_the_reason(tmp_path: Path, row: str, says: str) -> None:
    """They could run, so they are no errors."""
    rows = read_source(_file(tmp_path, f"op,shapes,dtype,latency_ms,attrs\n{row}\n"), ["rig"], spec=H100)
    assert rows.used == 0
    assert says in rows.refused[0].reason


def test_half_counts_where_it_runs_at_the_rate_of_bfloat16(tmp_path: Path) -> None:
    """It does on an H100, and not on a device whose datasheet has another rate for it."""
    path = _file(tmp_path, "op,shapes,dtype,latency_ms\nMatMul,8x4;4x2,half,0.5\n")
    faster = evolve(H100, peak_flops_per_s={**H100.peak_flops_per_s, "fp16": 2 * H100.peak_flops_per_s["bf16"]})
    assert len(read_source(path, ["rig"], spec=H100).products) == 1
    assert "whose peak rate is another" in read_source(path, ["rig"], spec=faster).refused[0].reason


def test_a_log_of_nccl_tests_gives_out_of_place_times(tmp_path: Path) -> None:
    """Kind and ranks come from the header, sizes in bytes and times in us from the rows; 0 bytes are refused."""
    rows = read_source(_file(tmp_path, LOG, "log.txt"), ["rig"])
    assert rows.collectives == (
        TimedCollective("all_gather", 2, 1024, 12500),
        TimedCollective("all_gather", 2, 2048, 12750),
    )
    assert len(rows.refused) == 1


def test_a_log_without_a_name_needs_the_kind(tmp_path: Path) -> None:
    """The kind is asked for where the log does not say it, and then used."""
    path = _file(tmp_path, LOG.replace("all_gather_perf", "x"), "log.txt")
    with pytest.raises(InvalidArgumentError, match=r"log\.txt:1: the log does not say .* give --collective"):
        read_source(path, ["rig"])
    assert {row.kind for row in read_source(path, ["rig"], "all_reduce").collectives} == {"all_reduce"}


def test_rows_of_other_systems_are_left_out(tmp_path: Path) -> None:
    """Shared tables are filtered by the names of the device; sizes of collectives count two bytes an element."""
    gemm = _file(tmp_path, name="gemm.csv", text="system,m,n,k,latency_ms\na,8,4,2,0.5\nb,8,4,2,0.25\n")
    assert read_source(gemm, ["B", "b"]).products == (TimedProduct(8, 4, 2, 1, "", 2.5e5),)
    nccl = _file(tmp_path, "system,op_name,num_gpus,elements_fp16,latency_ms\nb,alltoall,4,512,0.5\n")
    assert read_source(nccl, ["b"]).collectives == (TimedCollective("all_to_all", 4, 1024, 5e5),)
    with pytest.raises(InvalidArgumentError, match=r"no row is of 'c'; the systems of the file are a, b"):
        read_source(gemm, ["c"])


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ("MatMul,8x4;3x2,bfloat16,1", ":2: MatMul: Dimensions must be equal"),
        ("MatMul,8xx4;3x2,bfloat16,1", ":2: shapes = '8xx4;3x2' must be sizes"),
        ("MatMul,8x4,bfloat16,1", ":2: MatMul: it has 2 inputs, shapes has 1"),
        ("MatMul,8x4;4x2,bool,1", ":2: MatMul: Value for attr 'T' of bool is not in the list"),
        ("Conv2D,1x8x8x4;3x3x4x2,bfloat16,1", ":2: Conv2D: the attr 'strides' has no default"),
        ("MatMul,8x4;4x2,bfloat61,1", ":2: dtype"),
        ("MatMul,8x4;4x2,bfloat16,0", ":2: latency_ms = '0' must be above 0"),
    ],
)
def test_wrong_rows_are_errors_with_their_line(tmp_path: Path, row: str, says: str) -> None:
    """What cannot be right is an error, not a refused row."""
    with pytest.raises(InvalidArgumentError) as caught:
        read_source(_file(tmp_path, f"op,shapes,dtype,latency_ms\n{row}\n"), ["rig"])
    assert says in str(caught.value)


ATTENTION = "direction,batch,seq_len,head_num,kv_head_num,qk_head_dim,v_head_dim,qkv_contiguous,efficiency\n"
GROUPED = "ng,M,N,K,dtype,main_grad_dtype,stage,efficiency\n"


def test_tables_of_layers_are_known_by_their_columns(tmp_path: Path) -> None:
    """Shares are kept as they are; types other than bf16 are refused row by row."""
    rows = read_source(_file(tmp_path, f"{ATTENTION}bwd,1,4096,64,8,192,128,True,0.75\n"), ["rig"])
    assert rows.attentions == (MeasuredLayer("bwd", (1, 4096, 64, 8, 192, 128), 0.75),)
    text = f"{GROUPED}40,616,3072,5120,bf16,fp32,fwd,0.5\n40,616,3072,5120,fp8,bf16,fwd,0.5\n"
    rows = read_source(_file(tmp_path, text), ["rig"])
    assert rows.grouped == (MeasuredLayer("fwd", (40, 616, 3072, 5120, 4), 0.5),)
    assert [row.where.rpartition(":")[2] for row in rows.refused] == ["3"]
    assert rows.used == 1


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            f"{ATTENTION}forward,1,4096,64,8,192,128,True,0.75\n",
            "rows.csv:2: direction = 'forward' is none of fwd, bwd",
        ),
        (f"{ATTENTION}fwd,1,4096,64,8,192,128,True,0\n", "rows.csv:2: efficiency = '0' must be above 0"),
        (f"{GROUPED}40,616,3072,5120,bf16,int8,fwd,0.5\n", "rows.csv:2: main_grad_dtype = 'int8' is none of"),
        (f"{GROUPED}40,616,3072,5120,bf16,fp32,bwd,0.5\n", "rows.csv:2: stage = 'bwd' is none of"),
    ],
)
def test_wrong_rows_of_layers_are_named(tmp_path: Path, text: str, says: str) -> None:
    """File, line and value."""
    with pytest.raises(InvalidArgumentError) as caught:
        read_source(_file(tmp_path, text), ["rig"])
    assert says in str(caught.value)


def test_layers_are_calibrated(tmp_path: Path) -> None:
    """The report has the errors of sizes left out, beside the datasheet's, and the numbers of both directions."""
    sizes = [(s, h, q) for s in (2048, 16384) for h in (4, 16, 64) for q in (128, 192)]
    lines = [
        f"{way},1,{s},{h},{h},{q},128,True,{most / (1 + 8 * 4096 / (h * s)):.4f}\n"
        for way, most in (("fwd", 0.9), ("bwd", 0.8))
        for s, h, q in sizes
    ]
    report = calibrate([_file(tmp_path, ATTENTION + "".join(lines))], "B200-SXM", date="2026-11-23")
    (part,) = report.parts
    assert (part.name, part.rows) == ("attention", 24)
    assert part.datasheet_percent is not None
    assert part.mape_percent is not None
    assert part.mape_percent < part.datasheet_percent / 2
    assert {number.name for number in part.numbers} >= {"fwd.latency_ns", "bwd.rate_flops_per_s"}
    assert "[fits.attention.fwd]" in report.text()


B200_PRODUCTS = "# share of the peak\nb,m,k,n,layout,accumulate,out_dtype,efficiency\n2,64,128,32,NN,False,bf16,0.5\n"
B200_MEMORY = (
    "op,efficiency,gbps,latency_us\ndefault,0.6,8000.0,30\npermute_fwd,0.5,8000.0,30\npermute_bwd,0.4,8000.0,30\n"
    "other,0.5,8000.0,30\n"
)


def test_tables_of_a_b200_are_of_no_other_device(tmp_path: Path) -> None:
    """Efficiencies become times, given numbers stay numbers; another device and a fit of collectives are refused."""
    names = ("B200-SXM", "b200_sxm")
    products, memory = _file(tmp_path, B200_PRODUCTS, "gemm.csv"), _file(tmp_path, B200_MEMORY, "memory.csv")
    (row,) = read_source(products, names).products
    assert row[:5] == (64, 32, 128, 2, "NN")
    assert row.time_ns == pytest.approx(1e9 * 2 * 2 * 64 * 128 * 32 / (0.5 * 2250e12))
    given = read_source(memory, names)
    assert [(each.kind, each.rows) for each in given.memory] == [("default", 1), ("permute", 2)]
    assert given.memory[1].efficiency == pytest.approx(0.45)
    assert (given.used, len(given.refused)) == (3, 1)
    for path in (products, memory):
        with pytest.raises(InvalidArgumentError, match="measured on B200-SXM"):
            read_source(path, ["H100-SXM"])
    fit = _file(tmp_path, "op,scale,offset,efficiency,latency_us\nall_reduce,2,-1,0.7,5.5\n", "fit.csv")
    with pytest.raises(InvalidArgumentError, match="somebody's fit, not measurements"):
        read_source(fit, names)


@pytest.mark.parametrize(
    ("old", "new", "says"), [(",0.5\n", ",1.5\n", ":3: efficiency = 1.5"), ("NN", "XX", ":3: layout = 'XX'")]
)
def test_wrong_efficiencies_are_errors_with_their_line(tmp_path: Path, old: str, new: str, says: str) -> None:
    """A share above 1 and an unknown layout cannot be right."""
    with pytest.raises(InvalidArgumentError) as caught:
        read_source(_file(tmp_path, B200_PRODUCTS.replace(old, new)), ["B200-SXM"])
    assert says in str(caught.value)
