"""Compiles all functions of the graphs of a folder as one process of several, and prints their plans; run as a program.

    python -m tests.actors.running.remote.compiled_apart GRAPHS HOSTS OWN forwards|backwards

Printed is what a process keeps of each function: the text of its plans, and the shares of others.
"""

from __future__ import annotations

import sys
from pathlib import Path

from partita.actors.plans.printer import plan_text
from partita.actors.running.callee import CalledFunction
from partita.actors.running.remote.callee import RemoteCallee
from partita.actors.running.remote.functions import RemoteFunctions
from partita.devices.cluster import local_cluster
from partita.errors import PartitaError
from partita.graph.dtypes import DataType
from partita.graph.graphdef.importer import graph_def_to_graph
from partita.graph.protos import GraphDef, NameAttrList
from tests.actors.running.remote.processes import FakeProcess


def called_functions(graph_def: GraphDef, devices: list[str]) -> list[CalledFunction]:
    """Each function, called from every device, as a whole and with resources on the next devices."""
    called = []
    for function in graph_def.library.function:
        resources = [arg for arg in function.signature.input_arg if int(arg.type) == DataType.RESOURCE]
        for number, device in enumerate(devices):
            spread = tuple(devices[(number + k) % len(devices)] for k in range(len(resources)))
            name = NameAttrList(name=function.signature.name)
            called += [CalledFunction(name, device, spread), CalledFunction(name, device)]
    return called


def kept(functions: RemoteFunctions, called: CalledFunction) -> str:
    """What a process keeps of a function, or the error."""
    try:
        callee = functions.callee(called)
    except PartitaError as error:
        return str(error)
    shares = callee.elsewhere if isinstance(callee, RemoteCallee) else ()
    return "\n".join([*(plan_text(plan) for plan, _ in callee.work), *map(str, shares), str(callee.size)])


def main(graphs: str, hosts: str, own: str, order: str) -> None:
    for path in sorted(Path(graphs).iterdir()):
        print_all(GraphDef.FromString(path.read_bytes()), hosts, own, order)


def print_all(graph_def: GraphDef, hosts: str, own: str, order: str) -> None:
    """Prints what a process keeps of the functions of a graph, which it compiles in this order."""
    cluster = local_cluster(f"cpu:{len(hosts)}")
    process_of = dict(zip(cluster.names, hosts, strict=True))
    process = FakeProcess(own, [name for name in cluster.names if process_of[name] == own], process_of, cluster, 0)
    library = graph_def_to_graph(graph_def, add_default_attrs=True).functions
    functions = process.functions_of(library, soft=True)
    called = called_functions(graph_def, cluster.names)
    numbers = range(len(called)) if order == "forwards" else reversed(range(len(called)))
    texts = {number: kept(functions, called[number]) for number in numbers}
    for number, each in enumerate(called):
        print(each.function.name, each.device, each.resource_devices)
        print(texts[number])


if __name__ == "__main__":
    main(*sys.argv[1:])
