"""What exchanges say to each other (`rendezvous.messages`) <-> messages of the wire.

    Ask(7, 0, ["k1", "k2"])                       {"op": "ask", "step": 7, "first": 0, "keys": ["k1", "k2"]}
    Data(7, [0, 1], [1.0, dead], 4)               {"op": "data", "step": 7, "numbers": [0, 1], "bytes": 4, "dead": [1]}
    Arrived(4)                                    {"op": "arrived", "bytes": 4}

A value that could not be written as bytes comes as the error that its step fails with.
"""

from __future__ import annotations

from typing import Final

from .....devices.wire import NotSent, WireMessage, size_of
from .....errors import DataLossError, PartitaError, shown
from .....rendezvous import Received
from .....rendezvous.messages import Arrived, Ask, Data, ExchangeMessage
from .....rendezvous.rendezvous import Outcome
from .errors import error_of_code

EXCHANGE_OPS: Final = frozenset({"ask", "data", "arrived"})


def exchange_to_wire(message: ExchangeMessage) -> WireMessage:
    """The message of the wire for one of an exchange, whose values are tensors and not errors."""
    if isinstance(message, Ask):
        header = {"op": "ask", "step": message.step, "first": message.first, "keys": list(message.keys)}
        return WireMessage(header, [])
    if isinstance(message, Arrived):
        return WireMessage({"op": "arrived", "bytes": message.num_bytes}, [])
    values = [value for value in message.values if not isinstance(value, PartitaError)]
    dead = [place for place, value in enumerate(values) if value.is_dead]
    numbers = list(message.numbers)
    header = {"op": "data", "step": message.step, "numbers": numbers, "bytes": message.num_bytes, "dead": dead}
    return WireMessage(header, [None if value.is_dead else value.value for value in values])


def exchange_from_wire(message: WireMessage) -> ExchangeMessage:
    """The message of an exchange; DataLossError for what is none."""
    header = message.header
    try:
        match header["op"]:
            case "ask":
                return Ask(int(header["step"]), int(header["first"]), list(map(str, header["keys"])))
            case "arrived":
                return Arrived(int(header["bytes"]))
        dead = frozenset(header["dead"])
        values = [arrived(item, place in dead) for place, item in enumerate(message.tensors)]
        data = Data(int(header["step"]), list(map(int, header["numbers"])), values, int(header["bytes"]))
    except (KeyError, TypeError, ValueError) as error:
        raise DataLossError(f"a message of tensors is damaged: {shown(header)}") from error
    if len(data.numbers) != len(values):
        raise DataLossError(f"a message has {len(values)} tensors for {len(data.numbers)} numbers")
    return data


def size_of_message(message: Received) -> int:
    """The bytes of a message as they count against the budget of an exchange."""
    return 0 if message.is_dead else size_of(message.value)


def arrived(item: object, is_dead: bool = False) -> Outcome:
    """A tensor that has come, or the error in its place."""
    return error_of_code(item.code, item.message) if isinstance(item, NotSent) else Received(item, is_dead)
