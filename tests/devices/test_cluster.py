"""Clusters from a text or a file, and finding devices in them."""

from __future__ import annotations

from pathlib import Path

import pytest
from attrs import evolve
from hypothesis import given, strategies as st

from partita.devices import Cluster, Device, as_cluster, load_cluster, local_cluster, parse_cluster
from partita.devices.catalog import device_spec
from partita.errors import AlreadyExistsError, InvalidArgumentError, NotFoundError

TASK = "/job:localhost/replica:0/task:0"
TWO_WORKERS = """
[[device]]
job = "worker"
tasks = 2
spec = "A100-80GB"
count = 2

[[device]]
job = "ps"
host = "rack-1"
spec = { kind = "CPU", memory = "64 GiB", memory_bandwidth = "100 GB/s", peak_flops = { fp32 = "1 TFLOP/s" } }

[[link]]
between = "hosts"
link = "100 Gb InfiniBand"

[[link]]
between = ["/job:worker/replica:0/task:0/device:GPU:0", "/job:worker/replica:0/task:0/device:GPU:1"]
bandwidth = "25 GB/s"
latency = "2 us"
"""


@given(st.integers(1, 9), st.integers(0, 9), st.booleans())
def test_local_cluster_has_what_the_text_says(cpus: int, gpus: int, gpus_first: bool) -> None:
    """CPUs come first in any case, so the client device is CPU:0."""
    items = [f"cpu:{cpus}", *([f"gpu:{gpus}"] if gpus else [])]
    cluster = local_cluster(",".join(reversed(items) if gpus_first else items))
    kinds = [("CPU", i) for i in range(cpus)] + [("GPU", i) for i in range(gpus)]
    assert cluster.names == [f"{TASK}/device:{kind}:{i}" for kind, i in kinds]
    assert cluster.client.name == f"{TASK}/device:CPU:0"


def test_a_task_has_a_host() -> None:
    """A text without a CPU still gets one."""
    assert local_cluster("gpu").names == [f"{TASK}/device:CPU:0", f"{TASK}/device:GPU:0"]


@pytest.mark.parametrize(
    "text", ["", " ", "cpu:", "cpu:x", "tpu:1", "cpu:1;gpu:1", "cpu:0", "cpu:1,cpu:1", "cpu:1,", "4"]
)
def test_other_texts_are_refused(text: str) -> None:
    """The error quotes the text and shows a right one."""
    with pytest.raises(InvalidArgumentError) as error:
        local_cluster(text)
    assert repr(text) in error.value.message
    assert 'write "cpu:4" or "cpu:2,gpu:4"' in error.value.message


def test_models_can_be_chosen() -> None:
    """By name or as a spec, of the right kind."""
    cluster = local_cluster("cpu,gpu", cpu="Xeon-8280", gpu=device_spec("H100-SXM"))
    assert [device.spec.name for device in cluster] == ["Xeon-8280", "H100-SXM"]
    with pytest.raises(InvalidArgumentError, match="is a CPU, not a GPU"):
        local_cluster("gpu", gpu="Xeon-8280")


@pytest.mark.parametrize(
    "name",
    [f"{TASK}/device:GPU:1", f"{TASK}/gpu:1", "/device:GPU:1", "GPU:1", "/gpu:1", "/task:0/device:GPU:1"],
)
def test_a_device_answers_to_all_its_names(name: str) -> None:
    """Full, legacy full and local names; missing parts are the client's."""
    assert local_cluster("cpu:2,gpu:2").find(name).name == f"{TASK}/device:GPU:1"


@pytest.mark.parametrize("name", ["GPU:7", "/job:other/device:GPU:0", "nonsense", "", f"{TASK}/device:gpu:1"])
def test_unknown_names_list_what_exists(name: str) -> None:
    """The error lists all devices of a small cluster."""
    cluster = local_cluster("cpu:2,gpu:2")
    assert name not in cluster
    assert cluster.incarnation(name) == 0
    with pytest.raises(InvalidArgumentError) as error:
        cluster.find(name)
    assert repr(name) in error.value.message
    assert all(existing in error.value.message for existing in cluster.names)


@pytest.mark.parametrize(
    ("cluster", "expected"),
    [
        (local_cluster("cpu:1,gpu:2"), ["cpu:0", "gpu:0", "gpu:1"]),
        (
            parse_cluster('[[device]]\nspec = "A100-80GB"\ntasks = 2'),
            ["task 0 cpu:0", "task 0 gpu:0", "task 1 cpu:0", "task 1 gpu:0"],
        ),
        (
            parse_cluster('[[device]]\nspec = "generic-cpu"\njob = "ps"\n[[device]]\nspec = "generic-cpu"'),
            ["ps cpu:0", "localhost cpu:0"],
        ),
    ],
)
def test_short_names_leave_out_what_all_devices_share(cluster: Cluster, expected: list[str]) -> None:
    """Tables show them, and they are accepted as names of devices."""
    assert [cluster.short_names.by_device[name] for name in cluster.names] == expected
    assert [cluster.find(short).name for short in expected] == cluster.names
    assert cluster.short_names.shorten(f"from {cluster.names[0]} on") == f"from {expected[0]} on"


@given(
    st.lists(
        st.builds(
            Device,
            st.sampled_from([device_spec("generic-cpu"), device_spec("A100-80GB")]),
            st.integers(0, 11),
            st.sampled_from(["ps", "worker"]),
            st.integers(0, 1),
            st.integers(0, 11),
        ),
        min_size=1,
        unique_by=lambda device: device.name,
    )
)
def test_no_two_devices_share_a_short_name(devices: list[Device]) -> None:
    """Whatever the cluster: a short name leads back to its device, alone and within a text."""
    cluster = Cluster(devices)
    for name in cluster.names:
        short = cluster.short_names.by_device[name]
        assert cluster.find(short).name == name
        assert cluster.short_names.shorten(f"[{name}, {name}0]").startswith(f"[{short}, ")


def test_a_link_may_be_given_between_short_names() -> None:
    """The names that tables show."""
    cluster = parse_cluster(
        '[[device]]\nspec = "A100-80GB"\ncount = 2\n'
        '[[link]]\nbetween = ["gpu:0", "gpu:1"]\nbandwidth = "1 GB/s"\nlatency = "1 us"'
    )
    assert cluster.topology.route(*cluster.names[1:]).bandwidth_bytes_per_s == 10**9


@pytest.mark.parametrize("count", ["1000000", "65537", "9" * 60])
def test_a_count_beyond_any_cluster_is_refused_by_name(count: str) -> None:
    """Before any device is made."""
    with pytest.raises(InvalidArgumentError, match=f"'gpu:{count}' asks for .* devices; a cluster has at most 65,536"):
        local_cluster(f"cpu:1,gpu:{count}")


def test_what_may_stand_for_a_cluster(tmp_path: Path) -> None:
    """A cluster, a text, the path of a file; anything else is an error that names its type."""
    (tmp_path / "two.toml").write_text(TWO_WORKERS)
    cluster = local_cluster("gpu:2")
    assert as_cluster(cluster) is cluster
    assert as_cluster("gpu:2").names == cluster.names
    assert as_cluster(tmp_path / "two.toml").names == as_cluster(str(tmp_path / "two.toml")).names
    for wrong in (None, 2, ["gpu:2"], {"gpu": 2}):
        with pytest.raises(InvalidArgumentError, match=f"{type(wrong).__name__} is no cluster"):
            as_cluster(wrong)  # type: ignore[arg-type]  # the wrong type is what is tested


def test_long_lists_are_cut() -> None:
    """Eight names and the number of the others."""
    with pytest.raises(InvalidArgumentError, match="CPU:7 and 92 more"):
        local_cluster("cpu:100").find("GPU:0")


def test_incarnations() -> None:
    """Never 0; a restart makes the next one, in a new cluster."""
    cluster = local_cluster("cpu:2")
    again = cluster.with_restarted("CPU:1")
    assert [device.incarnation for device in cluster] == [1, 1]
    assert [device.incarnation for device in again] == [1, 2]
    with pytest.raises(InvalidArgumentError, match="incarnation 0"):
        evolve(cluster.client, incarnation=0)


def test_names_are_unique() -> None:
    """Two devices of one name, and no device at all, are errors."""
    device = Device(device_spec("generic-cpu"))
    with pytest.raises(AlreadyExistsError, match="two devices are called"):
        Cluster([device, device])
    with pytest.raises(InvalidArgumentError, match="at least one device"):
        Cluster([])


def test_cluster_file(tmp_path: Path) -> None:
    """Jobs, tasks, hosts, inline models and links are all in the cluster."""
    path = tmp_path / "cluster.toml"
    path.write_text(TWO_WORKERS)
    cluster = load_cluster(path)
    worker = ["CPU:0", "GPU:0", "GPU:1"]
    expected = [f"/job:worker/replica:0/task:{task}/device:{name}" for task in (0, 1) for name in worker]
    assert cluster.names == [*expected, "/job:ps/replica:0/task:0/device:CPU:0"]
    assert cluster.devices[-1].host == "rack-1"
    assert cluster.devices[-1].spec.memory_bytes == 64 * 2**30
    assert cluster.topology.route(cluster.names[1], cluster.names[2]).bandwidth_bytes_per_s == 25 * 10**9
    assert cluster.topology.route(cluster.names[0], cluster.names[3]).bandwidth_bytes_per_s == 12_500_000_000


DEVICE = '[[device]]\nspec = { kind = "CPU", memory = "1 GB", memory_bandwidth = "1 GB/s", peak_flops = '
RATE = '{ fp32 = "1 GFLOP/s" }'
LINK = '[[device]]\nspec="generic-cpu"\n[[link]]\nbetween="hosts"\n'


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('[[device]]\nspec = "generic-cpu"\ncount = 1000000', "device 0: count = 1000000 is beyond any cluster"),
        ('[[device]]\nspec = "generic-cpu"\ntasks = 1000000', "device 0: tasks = 1000000 is beyond any cluster"),
        ('[[device]]\nspec = "generic-cpu"\ncount = 999\ntasks = 999', "asks for 998,001 devices"),
        ('[[device]]\nspec = "generic-cpu"\ncount = -1', "count = -1 must be"),
        ('[[device]]\nspec = "generic-cpu"\ncount = nan', "count = nan must be"),
        ('[[device]]\nspec = "generic-cpu"\ncount = 1.5', "count = 1.5 must be"),
        ('[[device]]\nspec = "generic-cpu"\ntask = -1', "task = -1 must be"),
        ('[[device]]\nspec = "generic-cpu"\njob = "a b"', "job = 'a b' must be letters"),
        (DEVICE + RATE + ', launch_overhead = "1e30 s" }', "launch_overhead: '1e30 s' is no duration of any hardware"),
        (DEVICE + RATE + ', launch_overhead = "-1 us" }', "launch_overhead: '-1 us' is no duration: it is negative"),
        (DEVICE + RATE + ', launch_overhead = "nan s" }', "launch_overhead: 'nan s' is no duration"),
        (DEVICE + RATE + ", launch_overhead = inf }", "launch_overhead: inf is no duration"),
        (DEVICE + RATE + ', host_memory = "1e30 B" }', "host_memory: '1e30 B' is no amount of memory"),
        (
            DEVICE + RATE + ', host_link = "NVLink33" }',
            "host_link = 'NVLink33' is no link of the catalog; did you mean",
        ),
        (DEVICE + '{ fp32 = "1e30 FLOP/s" } }', "peak_flops: fp32: '1e30 FLOP/s' is no compute rate of any hardware"),
        (DEVICE + '{ fp32 = "0 FLOP/s" } }', "peak_flops_per_s = {'fp32': 0} must be above 0"),
        (LINK + 'bandwidth = "0 GB/s"\nlatency = "1 us"', "link 0: bandwidth_bytes_per_s = 0 must be above 0"),
        (LINK + 'bandwidth = "1e30 B/s"\nlatency = "1 us"', "link 0: bandwidth: '1e30 B/s' is no bandwidth of any"),
        (LINK + 'bandwidth = "1 GB/s"\nlatency = "1e30 s"', "link 0: latency: '1e30 s' is no duration of any hardware"),
        (LINK + f'bandwidth = "{"9" * 5000} B/s"\nlatency = "1 s"', "it is too long"),
        ("[[device]", "this is not TOML"),
        ("", "at least one device"),
        ("[[devise]]", "unknown key 'devise'; did you mean 'device'"),
        ("[device]", "write [[device]] with double brackets"),
        ("[[device]]", "device 0: 'spec' is missing"),
        ('[[device]]\nspec = "A100-80"', "did you mean 'A100-80GB'"),
        ("[[device]]\nspec = 1", "must be a name of the catalog or a table"),
        ('[[device]]\nspec = "generic-cpu"\ncount = 0', "count = 0 must be a whole number of at least 1"),
        ('[[device]]\nspec = "generic-cpu"\ntask = 0\ntasks = 1', "not both"),
        ('[[device]]\nspec = "generic-cpu"\njob = 3', "job = 3 must be a text"),
        ('[[device]]\nspec = { kind = "CPU", memory = "5" }', "device 0: spec: 'memory_bandwidth' is missing"),
        ('[[device]]\nspec="generic-cpu"\n[[link]]\nbetween="hots"\nlink="loopback"', "did you mean 'hosts'"),
        ('[[device]]\nspec="generic-cpu"\n[[link]]\nbetween="hosts"\nlink="loopbak"', "did you mean 'loopback'"),
        ('[[device]]\nspec="generic-cpu"\n[[link]]\nbetween="hosts"\nbandwidth="1 GB/s"', "'latency' is missing"),
        ('[[device]]\nspec="generic-cpu"\n[[link]]\nlink="loopback"', "between = None must be one of"),
        (
            '[[device]]\nspec="generic-cpu"\n[[link]]\nbetween=["CPU:0","CPU:1"]\nlink="loopback"',
            "'CPU:1' is no device",
        ),
        (
            '[[device]]\nspec="generic-cpu"\nhost="a"\n[[device]]\nspec="generic-cpu"\nhost="b"',
            "task 0 of job 'localhost' has two hosts: a, b",
        ),
    ],
)
def test_wrong_files_are_refused(text: str, why: str) -> None:
    """The error begins with the name of the file and says where and why."""
    with pytest.raises(InvalidArgumentError) as error:
        parse_cluster(text, name="my.toml")
    assert why in error.value.message


def test_unreadable_files(tmp_path: Path) -> None:
    """A missing file and one that is not text."""
    with pytest.raises(NotFoundError, match="cannot be read"):
        load_cluster(tmp_path / "none.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(InvalidArgumentError, match="is not text"):
        load_cluster(tmp_path / "binary.toml")
