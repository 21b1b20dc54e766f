"""What an op can be to the runtime, to memory and to variables: the values of facts of its record.

They stand apart from `record`, which says what each of them is of.
"""

from __future__ import annotations

from enum import Enum, auto


class NodeClass(Enum):
    """The class of ops that the runtime treats in its own way; OTHER for most."""

    SWITCH = auto()
    MERGE = auto()
    ENTER = auto()
    EXIT = auto()
    NEXT_ITERATION = auto()
    LOOP_COND = auto()
    CONTROL_TRIGGER = auto()
    SEND = auto()
    HOST_SEND = auto()
    RECV = auto()
    HOST_RECV = auto()
    CONSTANT = auto()
    VARIABLE = auto()
    IDENTITY = auto()
    GET_SESSION_HANDLE = auto()
    GET_SESSION_TENSOR = auto()
    DELETE_SESSION_TENSOR = auto()
    METADATA = auto()
    SCOPED_ALLOCATOR = auto()
    COLLECTIVE = auto()
    ARG = auto()
    RETVAL = auto()
    NO_OP = auto()
    OTHER = auto()


CONTROL_FLOW = frozenset({NodeClass.SWITCH, NodeClass.MERGE, NodeClass.ENTER, NodeClass.EXIT, NodeClass.NEXT_ITERATION})
"""classes of the nodes that decide whether, and how often, other nodes run"""
SENDS = frozenset({NodeClass.SEND, NodeClass.HOST_SEND})
RECVS = frozenset({NodeClass.RECV, NodeClass.HOST_RECV})
TRANSFERS = SENDS | RECVS
"""classes of Send and Recv nodes"""


class Calls(Enum):
    """How an op calls the functions that its attrs name."""

    CALL = "call"
    """the function of attr `f`, whose nodes may be on many devices"""
    REMOTE = "remote"
    """the function of attr `f`, on the device that input 0 names"""
    MAP = "map"
    """the function of attr `f`, once per row of its inputs"""
    GRADIENT = "gradient"
    """the gradient of the function of attr `f`"""
    IF = "if"
    """`then_branch` or `else_branch`"""
    CASE = "case"
    """one of `branches`"""
    WHILE = "while"
    """`cond` and `body` alternately"""
    FOR = "for"
    """`body` once per number from input 0 up, or down, to input 1 by steps of input 2"""


LOOPS = (Calls.WHILE, Calls.FOR)
"""how ops call functions on the results of the call before"""


class State(Enum):
    """The kind of state that an op creates, reads or changes."""

    VARIABLE = "variable"
    QUEUE = "queue"
    """queues, staging areas, barriers, accumulators, locks"""
    TABLE = "table"
    ITERATOR = "iterator"
    """iterators over datasets, and what these share from epoch to epoch: caches, seeds"""
    LIST = "list"
    """tensor arrays and stacks"""
    RANDOM = "random"
    """a generator of random numbers"""
    FILES = "files"
    SESSION = "session"
    """tensors kept in a session under a handle"""


class Exchange(Enum):
    """What the members of a collective exchange; the values are the kinds that `collective_time` knows."""

    ALL_REDUCE = "all_reduce"
    ALL_GATHER = "all_gather"
    REDUCE_SCATTER = "reduce_scatter"
    ALL_TO_ALL = "all_to_all"
    BROADCAST = "broadcast"
    PERMUTE = "permute"
    NOTHING = "nothing"
    """it has no members: it says who they are, or what other devices have comes by transfers"""


class ReadsHandle(Enum):
    """What an op outputs of the object whose handle is its first input; its shape follows from that of the object."""

    VALUE = "value"
    """a value of the shape behind the handle"""
    ELEMENTS = "elements"
    """one value of that shape per element of input 1"""
    ROWS = "rows"
    """one row of the value per element of input 1"""
    SLICES = "slices"
    """one slice of the value per row of input 1, which has indices of its first axes"""
    SHAPE = "shape"
    """the shape itself, as a vector"""
    ITEM = "item"
    """the components of one element of a queue"""
    ITEMS = "items"
    """the components of several elements, as many as input 1 says, stacked"""
    UP_TO = "up to"
    """the components of at most so many elements, stacked"""
    KEYED = "keyed"
    """indices, keys and then the components of several elements of a barrier, stacked"""
    STACKED = "stacked"
    """all elements of a list, stacked"""
    JOINED = "joined"
    """all elements of a list, concatenated along axis 0, and their lengths"""
    LAST = "last"
    """the list without its last element, and that element"""


class WritesList(Enum):
    """What a tensor is for the list that a node writes it to."""

    ELEMENT = "element"
    ROWS = "rows"
    """each row is an element"""
    PIECES = "pieces"
    """each element has several rows"""


class Holding(Enum):
    """What an op does with the elements of a holder of tensors: a list, a stack, an array, a queue, a staging area.

    A holder is a value (a variant: a list, a map, an optional, a dataset) that the op gets or makes, or an object
    behind a handle or a name. An element may have several components. Other ops have none of these.
    """

    PUTS = "puts"
    """inputs, from `written_input` on, become an element: they are shared, not copied"""
    PUSHES = "pushes"
    """the same, and the input is also the output"""
    PUTS_COPIES = "puts copies"
    """rows, pieces or splits of inputs are copied, and become elements"""
    ADDS = "adds"
    """the first input is copied and becomes the only element, to which others are added"""
    TAKES_FIRST = "takes first"
    """the element that was put first leaves, and is the outputs"""
    TAKES_LAST = "takes last"
    """the element that was put last leaves, and is the outputs, behind the list where that is one"""
    TAKES_COPIES = "takes copies"
    """several elements leave, and are copied into the outputs"""
    READS = "reads"
    """an element is the outputs, and stays, unless the holder is an array whose elements are read once"""
    READS_COPIES = "reads copies"
    """elements are copied into an output, and stay, unless the holder is an array whose elements are read once"""
    DROPS = "drops"
    """an element leaves"""
    CLEARS = "clears"
    """all elements leave"""
    JOINS = "joins"
    """the elements of all lists that it gets are those of the one that it makes"""
    SUMS = "sums"
    """the same, but elements of different lists that have one place are added up"""
    LIKE = "like"
    """the list that it makes has elements of its own, as large as those of the one that it gets"""
    GRADIENT = "gradient"
    """it makes the array of the gradients of another array, or finds the one that was made for the same source"""
    KEEPS = "keeps"
    """its inputs are kept until the step has ended, and longer"""


class Updates(Enum):
    """What an op changes its first input by, a variable."""

    GRADIENT = "gradient"
    """the step of an optimizer, of which one of its inputs is the gradient"""
    VALUE = "value"
    """a value that is assigned, added, subtracted ..., to the whole or to rows"""
