"""The text of a cut: every partition under its device, every transfer with the node at its other end."""

from __future__ import annotations

from partita.graph import split_graph
from partita.graph.partition.printer import partitions_text
from tests.graph.partition.test_split import CPU0, CPU1, diamond, placed

TEXT = f"""\
{CPU0}: 4 nodes
x: float = Placeholder() {{shape=[]}}
x/_0 = _Send(x) {{edge_1_x to x/_1 @CPU:1}}
x/ctrl/_2: float = Const(^x) {{value=[0]}}
x/_3 = _Send(x/ctrl/_2) {{edge_3_x to x/_4 @CPU:1}}

{CPU1}: 6 nodes
x/_1: float = _Recv() {{edge_1_x from x/_0 @CPU:0}}
a: float = Neg(x/_1)
b: float = Abs(x/_1)
x/_4: float = _Recv() {{edge_3_x from x/_3 @CPU:0}}
x/_5: float = Identity(x/_4)
c = NoOp(^x/_5)"""


def test_transfers_are_printed_with_their_other_end() -> None:
    assert partitions_text(split_graph(placed(diamond))) == TEXT


def test_a_partition_alone_says_the_device_at_the_other_end() -> None:
    parts = split_graph(placed(diamond))
    assert partitions_text({CPU0: parts[CPU0]}).splitlines()[2] == "x/_0 = _Send(x) {edge_1_x to CPU:1}"


def test_nodes_are_chosen_by_name() -> None:
    text = partitions_text(split_graph(placed(diamond)), only=lambda name: name == "x/_1")
    assert text.splitlines() == [f"{CPU0}: 0 of 4 nodes", "", f"{CPU1}: 1 of 6 nodes", *TEXT.splitlines()[7:8]]
