"""The text of a cut: what is left out of it. `test_split` has whole ones, with both ends of every transfer."""

from __future__ import annotations

from partita.graph import split_graph
from partita.graph.partition.printer import partitions_text
from tests.goldens import assert_text
from tests.graph.partition.test_split import CPU0, CPU1, diamond, placed


def test_a_partition_alone_says_the_device_at_the_other_end() -> None:
    parts = {CPU0: split_graph(placed(diamond))[CPU0]}
    assert_text(
        partitions_text(parts, only=lambda name: name == "x/_0"),
        """
        /job:localhost/replica:0/task:0/device:CPU:0: 1 of 4 nodes
        x/_0 = _Send(x) {edge_1_x to CPU:1}
        """,
    )


def test_nodes_are_chosen_by_name() -> None:
    """Every part says how many of its nodes are shown."""
    assert_text(
        partitions_text(split_graph(placed(diamond)), only=lambda name: name == "x/_1"),
        """
        /job:localhost/replica:0/task:0/device:CPU:0: 0 of 4 nodes

        /job:localhost/replica:0/task:0/device:CPU:1: 1 of 6 nodes
        x/_1: float = _Recv() {edge_1_x from x/_0 @CPU:0}
        """,
    )


def test_locations_are_chosen() -> None:
    """The other end of a transfer is named even if its part is not shown."""
    parts = split_graph(placed(diamond))
    assert_text(
        partitions_text(parts, only=lambda name: name == "x/_4", shown=[CPU1]),
        """
        /job:localhost/replica:0/task:0/device:CPU:1: 1 of 6 nodes
        x/_4: float = _Recv() {edge_3_x from x/_3 @CPU:0}
        """,
    )
