"""Which devices fit a partial name: those that a pass over all of them finds, best first."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given, strategies as st

from partita.devices.placement.candidates import DeviceSet
from partita.graph.device_name import ParsedName, is_specification

_JOBS, _TYPES = ("a", "b"), ("CPU", "GPU")
_devices = st.lists(
    st.builds(
        lambda job, task, kind, index: f"/job:{job}/replica:0/task:{task}/device:{kind}:{index}",
        *(st.sampled_from(_JOBS), st.integers(0, 2), st.sampled_from(_TYPES), st.integers(0, 11)),
    ),
    min_size=1,
    unique=True,
)
_names = st.builds(
    ParsedName,
    *(st.none() | st.sampled_from((*_JOBS, "c")), st.none() | st.just(0), st.none() | st.integers(0, 2)),
    *(st.none() | st.sampled_from(_TYPES), st.none() | st.integers(0, 11)),
)
_kinds = st.none() | st.lists(st.sampled_from(_TYPES), unique=True)


@given(_devices, st.lists(_names, min_size=1), _kinds)
def test_devices_that_fit_are_found_in_their_ranks(
    names: Sequence[str], wanted: list[ParsedName], types: Sequence[str] | None
) -> None:
    """Names that leave open the same parts share a table, whichever of them comes first."""
    devices = DeviceSet(names)
    for name in wanted:
        assert devices.matching(name, types) == [
            device
            for device, parts in devices.ranked
            if is_specification(name, parts) and (types is None or parts.type in types)
        ]
