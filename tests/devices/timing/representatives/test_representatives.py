"""Steps of representatives: what is shared, what is counted, what is told, and what is refused."""

from __future__ import annotations

from itertools import count
from typing import Literal

import pytest

from partita.actors import open_session
from partita.devices import Cluster, collective_time, cut, explain, local_cluster, parse_cluster
from partita.devices.timing import simulate
from partita.devices.timing.export.chrome import chrome_trace
from partita.devices.timing.export.csv import to_csv
from partita.devices.timing.export.run_metadata import step_stats
from partita.errors import InvalidArgumentError, UnimplementedError
from partita.graph.builder.handles import Tensor
from partita.graph.parallel.mesh.mesh import Mesh
from partita.graph.parallel.mesh.rank_program import RankProgram
from partita.graph.parallel.mesh.write_out import as_representatives
from tests.devices.timing.representatives.steps import (
    Program,
    gpus,
    graph_of,
    of_representatives,
    played,
    sent,
    summed,
    variable,
    written_out,
)


def hosts(count: int, gpus_each: int, more: str = "") -> Cluster:
    """Hosts of H100s with one network port."""
    return parse_cluster(
        f'[[device]]\njob = "w"\ntasks = {count}\nspec = "H100-SXM"\ncount = {gpus_each}\n'
        '[[nic]]\nbandwidth = "10 GB/s"\nlatency = "5 us"\n' + more
    )


def test_equal_transfers_share_the_port_of_their_host() -> None:
    """Four ranks of one host send at once over one port: each has a quarter of it."""
    cluster, mesh = hosts(2, 4), Mesh(pp=2, tp=4)
    alone, four = played(sent(), Mesh(pp=2, dp=2), hosts(4, 1)), played(sent(), mesh, cluster)
    one, shared = (next(e for e in timeline.events if e.kind == "copy") for timeline in (alone, four))
    assert shared.duration_ns == pytest.approx(4 * one.duration_ns, abs=4)  # each is rounded up
    assert four.makespan_ns == written_out(sent(), mesh, cluster).makespan_ns


def test_a_collective_is_planned_for_its_whole_group() -> None:
    """Alone it takes `collective_time` of all its ranks, of which one is played."""
    cluster, mesh = hosts(1, 8), Mesh(tp=8)
    timeline = played(summed("tp"), mesh, cluster)
    event = timeline.find("sum")
    assert event.duration_ns == collective_time("all_reduce", gpus(cluster), event.bytes, cluster).time_ns
    assert "of 8 gpus" in event.provenance
    assert len([e for e in timeline.events if e.kind == "collective"]) == 1


def test_groups_of_an_axis_run_at_the_same_time() -> None:
    """Two groups over one port take longer than one group: their rings share it."""
    one, two = hosts(2, 1), hosts(2, 2)
    alone = played(summed("dp"), Mesh(dp=2), one).find("sum")
    both = played(summed("dp"), Mesh(dp=2, tp=2), two).find("sum")
    assert both.duration_ns > alone.duration_ns
    assert both.duration_ns == written_out(summed("dp"), Mesh(dp=2, tp=2), two).find("sum").duration_ns


def test_a_collective_along_pp_joins_the_stages() -> None:
    """Members of all stages come, and begin when the last of them is ready."""

    def program(ranks: RankProgram, stages: list[str]) -> list[Tensor]:
        tensors = []
        for number, stage in enumerate(stages):
            with ranks.on_stage(number, stage):
                x = variable(ranks, (512 * (number + 1), 512), f"x{number}")
                y = ranks.b.op("MatMul", x, x, transpose_a=True)[0]
                ranks._instances = count(7)  # one instance, with a member on each stage
                tensors.append(ranks.all_reduce(y, "pp", name=f"sum{number}"))
        return tensors

    cluster, mesh = hosts(1, 8), Mesh(pp=2, dp=2, tp=2)
    timeline = played(program, mesh, cluster)
    first, second = timeline.find("sum0"), timeline.find("sum1")
    assert (first.start_ns, first.end_ns) == (second.start_ns, second.end_ns)
    assert timeline.makespan_ns == written_out(program, mesh, cluster).makespan_ns


@pytest.mark.parametrize("order", ["ready", "critical-path"])
def test_an_order_is_that_of_all_ranks(order: Literal["ready", "critical-path"]) -> None:
    """Kernels and collectives are taken in the same order: two sums in turns, of which one is long."""

    def program(ranks: RankProgram, stages: list[str]) -> list[Tensor]:
        with ranks.on_stage(0, stages[0]):
            x = variable(ranks, (1024, 1024), "x")
            first = ranks.b.op("MatMul", x, x)[0]
            others = [ranks.all_reduce(ranks.b.op("MatMul", first, x)[0], axes) for axes in ("tp", "dp", "tp")]
            return [*others, ranks.b.op("MatMul", others[2], x)[0]]

    cluster, mesh = hosts(2, 4), Mesh(dp=2, tp=4)
    ends = [run(program, mesh, cluster, order=order).makespan_ns for run in (played, written_out)]
    assert ends[0] == ends[1]


def test_it_says_what_stood_for_what() -> None:
    """`representatives` maps each representative to the devices of its stage, in order."""
    cluster, mesh = hosts(2, 4), Mesh(pp=2, dp=2, tp=2)
    timeline = played(sent(), mesh, cluster)
    names = gpus(cluster)
    assert dict(timeline.representatives) == {names[0]: tuple(names[:4]), names[4]: tuple(names[4:])}
    assert timeline.representatives.mesh == mesh.text
    assert not written_out(sent(), mesh, cluster).representatives


def test_totals_are_of_all_devices() -> None:
    """Operations, bytes and runs of ops are those of the graph of all ranks."""
    cluster, mesh = hosts(2, 4), Mesh(pp=2, tp=4)
    own, whole = played(sent(), mesh, cluster), written_out(sent(), mesh, cluster)
    assert (own.flops, own.transferred_bytes, own.sources) == (whole.flops, whole.transferred_bytes, whole.sources)
    assert own.totals_by_op() == whole.totals_by_op()


def test_the_load_of_a_port_is_that_of_all_flows() -> None:
    """A link carries what it does with all ranks; one that no representative uses carries as much as its equal."""
    cluster, mesh = hosts(2, 4), Mesh(pp=2, tp=4)
    own, whole = played(sent(), mesh, cluster), written_out(sent(), mesh, cluster)
    links = [link for link in cluster.topology.links() if whole.link_loads(link)]
    assert len(links) > 4
    assert [own.link_loads(link) for link in links] == [whole.link_loads(link) for link in links]


def test_exporters_say_for_how_many_a_device_stands() -> None:
    """A Chrome trace, a table and RunMetadata; nothing is said where each device stands for itself."""
    cluster, mesh = hosts(1, 4), Mesh(tp=4)
    own, whole = played(summed("tp"), mesh, cluster), written_out(summed("tp"), mesh, cluster)
    told = chrome_trace(own)["otherData"]["representatives"]
    assert told == {"mesh": "pp:1,dp:1,cp:1,tp:4", "devices": {gpus(cluster)[0]: 4}}
    assert "representatives" not in chrome_trace(whole)["otherData"]
    header, first, *_ = to_csv(own).splitlines()
    assert (header.split(",")[-1], first.split(",")[-1]) == ("devices", "4")
    assert not to_csv(whole).splitlines()[0].endswith("devices")
    threads = [name for stats in step_stats(own).dev_stats for name in stats.thread_names.values()]
    assert threads
    assert all(name.endswith("of 4 devices") for name in threads)
    assert "stands for 4 devices" in own.render()


async def test_a_run_refuses_representatives() -> None:
    """Nobody would compute the values of the other ranks."""
    cluster = local_cluster("gpu:4")
    graph, targets = graph_of(summed("tp"), Mesh(tp=4), gpus(cluster))
    async with open_session(as_representatives(graph, Mesh(tp=4)).to_graph_def(), cluster) as session:
        with pytest.raises(InvalidArgumentError, match="stands for the nodes of 4 ranks"):
            await session.run(targets)


def test_explain_tells_the_time_of_a_whole_group() -> None:
    """A collective of representatives is explained as that of all ranks."""
    cluster, mesh = hosts(1, 8), Mesh(tp=8)
    parts, (target,) = of_representatives(summed("tp"), mesh, cluster)
    (told,) = explain(parts, cluster, [target])
    assert told.cost.time_ns == played(summed("tp"), mesh, cluster).find(target).duration_ns


def slow(gpu: int, start: str = "0 us") -> str:
    """A GPU of the first host is twice as slow from some time on."""
    return f'[[slow]]\ndevice = "/job:w/replica:0/task:0/device:GPU:{gpu}"\nfactor = 2\nfrom = "{start}"\n'


@pytest.mark.parametrize("gpu", [0, 3])
def test_a_straggler_is_refused(gpu: int) -> None:
    """Whether it is a representative or not; one that is not in the mesh changes nothing."""
    with pytest.raises(UnimplementedError, match=f"GPU:{gpu}.*not slow at the same times"):
        played(summed("tp"), Mesh(tp=4), hosts(1, 8, slow(gpu)))
    fine = played(summed("tp"), Mesh(tp=4), hosts(1, 8, slow(5)))
    assert fine.makespan_ns == played(summed("tp"), Mesh(tp=4), hosts(1, 8)).makespan_ns


def test_what_is_slow_alike_is_played() -> None:
    """All ranks of a stage at once, or one after the step."""
    all_slow = hosts(1, 4, "".join(map(slow, range(4))))
    assert (
        played(summed("tp"), Mesh(tp=4), all_slow).makespan_ns
        == written_out(summed("tp"), Mesh(tp=4), all_slow).makespan_ns
    )
    late = hosts(1, 4, slow(2, "9 s"))
    assert (
        played(summed("tp"), Mesh(tp=4), late).makespan_ns == played(summed("tp"), Mesh(tp=4), hosts(1, 4)).makespan_ns
    )


def test_a_degraded_link_of_one_rank_is_refused() -> None:
    """The transfers of the ranks end at different times; a link of all ranks is played."""
    name = "/job:w/replica:0/task:0 -> network (inline)"
    mesh, degraded = Mesh(pp=2, dp=2, tp=2), '[[degrade]]\nlink = "%s"\nfactor = 3\n'
    with pytest.raises(UnimplementedError, match=r"as other flows share their links|not alike"):
        played(sent(), mesh, hosts(4, 2, degraded % name))
    both = hosts(4, 2, degraded % "inline")
    assert played(sent(), mesh, both).makespan_ns == written_out(sent(), mesh, both).makespan_ns


def test_ranks_of_other_models_are_refused() -> None:
    """By the names of two devices and their models."""
    cluster = parse_cluster(
        '[[device]]\njob = "w"\nspec = "H100-SXM"\ncount = 2\n'
        '[[device]]\njob = "w"\ntask = 1\nspec = "A100-80GB"\ncount = 2\n'
    )
    with pytest.raises(UnimplementedError, match="the first is a H100-SXM, the second a A100-80GB"):
        played(summed("dp"), Mesh(dp=4), cluster)
    assert played(sent(), Mesh(pp=2, tp=2), cluster).makespan_ns > 0  # each stage has one model


def test_groups_on_other_numbers_of_hosts_are_refused() -> None:
    """Groups of four on hosts of six: the second is on two hosts."""
    with pytest.raises(UnimplementedError, match=r"the first is on 1 host with 4 ranks, the second on 2 hosts"):
        played(summed("tp"), Mesh(dp=3, tp=4), hosts(2, 6))


def refused(program: Program, mesh: Mesh, cluster: Cluster) -> str:
    """What a step of representatives is refused with."""
    with pytest.raises(InvalidArgumentError) as error:
        played(program, mesh, cluster)
    return str(error.value)


def test_a_mesh_that_does_not_fit_is_refused() -> None:
    """More ranks than devices; marks that contradict each other; a node elsewhere."""
    cluster = hosts(1, 4)
    graph, targets = graph_of(summed("tp"), Mesh(tp=4), gpus(cluster))
    marked = as_representatives(graph, Mesh(tp=4)).to_graph_def()
    with pytest.raises(InvalidArgumentError, match="has 4 ranks, the cluster 2 devices"):
        simulate(cut(marked, cluster, targets=targets), hosts(1, 2))
    marked.node[0].attr["_multiplicity"].i = 3
    with pytest.raises(InvalidArgumentError, match="contradict each other: _multiplicity is 3, 4"):
        simulate(cut(marked, cluster, targets=targets), cluster)


def test_a_node_on_no_representative_is_refused() -> None:
    """Its device and the mesh are named."""

    def program(ranks: RankProgram, stages: list[str]) -> list[Tensor]:
        with ranks.b.device(stages[0].replace("GPU:0", "GPU:1")):
            return [ranks.b.op("Neg", variable(ranks, (4,)), name="stray")[0]]

    assert "neither the first rank of a stage of mesh pp:1,dp:1,cp:1,tp:2" in refused(program, Mesh(tp=2), hosts(1, 2))
