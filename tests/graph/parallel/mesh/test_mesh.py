"""Ranks, coordinates and groups of a mesh."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, strategies as st

from partita.errors import InvalidArgumentError
from partita.graph.parallel.mesh.mesh import Mesh

AXES = ["tp", "cp", "ep", "edp", "dp", "pp", "dp+cp", "edp+cp", "tp+dp+cp", "ep+tp"]


@st.composite
def meshes(draw: st.DrawFn) -> Mesh:
    ep, edp = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    pp, cp, tp = (draw(st.integers(1, 3)) for _ in range(3))
    return Mesh(pp=pp, dp=ep * edp, cp=cp, tp=tp, ep=ep)


@given(meshes(), st.sampled_from(AXES))
def test_groups_along_axes_part_the_ranks(mesh: Mesh, axes: str) -> None:
    """Every rank is in one group, at its position, and all members say the same group and key."""
    seen: dict[int, tuple[int, ...]] = {}
    for rank in range(mesh.devices):
        group = mesh.group(axes, rank)
        assert len(group) == mesh.size(axes)
        assert group == tuple(sorted(set(group)))
        assert group[mesh.position(axes, rank)] == rank
        assert {mesh.key(axes, other) for other in group} == {mesh.key(axes, rank)}
        assert seen.setdefault(mesh.key(axes, rank), group) == group
    assert sum(map(len, seen.values())) == mesh.devices


@given(meshes())
def test_keys_of_different_axes_differ(mesh: Mesh) -> None:
    """As those of `ep` and `edp`, which are both parts of dp."""
    keys = {axes: {mesh.key(axes, rank) for rank in range(mesh.devices)} for axes in AXES}
    for one, other in product(AXES, AXES):
        assert one == other or not keys[one] & keys[other]


@given(meshes())
def test_ranks_and_coordinates_are_inverse_and_so_are_text_and_mesh(mesh: Mesh) -> None:
    """rank = ((pp * DP + dp) * CP + cp) * TP + tp."""
    places = [mesh.coordinates(rank) for rank in range(mesh.devices)]
    assert [mesh.rank(place) for place in places] == list(range(mesh.devices))
    assert places == sorted(places)
    assert Mesh.parse(mesh.text) == mesh


def test_neighbours_of_dp_share_out_experts() -> None:
    """With dp 4 and ep 2, over two ranks of tp."""
    mesh = Mesh(dp=4, tp=2, ep=2)
    assert mesh.group("ep", 5) == (5, 7)
    assert mesh.group("edp", 5) == (1, 5)
    assert mesh.group("dp", 5) == (1, 3, 5, 7)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Mesh(tp=0), "tp=0"),
        (lambda: Mesh(dp=6, ep=4), "choose one of 1, 2, 3, 6"),
        (lambda: Mesh.parse("tp:2,tp:4"), "is no mesh"),
        (lambda: Mesh.parse("tp=2"), "is no mesh"),
        (lambda: Mesh(tp=2).coordinates(2), "no rank 2"),
        (lambda: Mesh(tp=2).group("xp", 0), "'xp' are no axes"),
    ],
)
def test_what_is_no_mesh_is_refused(make, message) -> None:  # type: ignore[no-untyped-def]  # lambdas of any result
    """With the sizes that would do."""
    with pytest.raises(InvalidArgumentError, match=message):
        make()


@given(meshes(), st.sampled_from(["dp", "edp"]), st.data())
def test_groups_of_neighbours_along_an_axis(mesh: Mesh, axis: str, data: st.DataObject) -> None:
    """They and their peers part the ranks of the axis, with keys of their own."""
    size = data.draw(st.sampled_from([n for n in range(1, 10) if mesh.size(axis) % n == 0]))
    near, far = f"{axis}:{size}", f"{axis}/{size}+cp"
    assert (mesh.size(near), mesh.size(far)) == (size, mesh.size(f"{axis}+cp") // size)
    for rank in range(mesh.devices):
        whole = mesh.group(axis, rank)
        at = whole.index(rank)
        assert mesh.group(near, rank) == whole[at // size * size :][:size]
        assert mesh.group(f"{axis}/{size}", rank) == whole[at % size :: size]
    keys = {axes: {mesh.key(axes, rank) for rank in range(mesh.devices)} for axes in (near, far, axis, "tp", "cp")}
    assert sum(map(len, keys.values())) == len(set().union(*keys.values()))


@pytest.mark.parametrize("axes", ["dp:3", "dp/0", "tp:2", "dp:2+edp", "dp:2+dp/2", "dp:", "zp"])
def test_axes_that_cannot_be(axes: str) -> None:
    """They are refused."""
    with pytest.raises(InvalidArgumentError, match=r"are no axes|have no groups of|part of an axis"):
        Mesh(dp=4, tp=2).size(axes)
