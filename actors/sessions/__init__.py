"""Sessions: what a user opens on a graph and a cluster, asks for values, and closes.

Who does what, from the outside in:

    BlockingSession     bridges/                a `Session` for code without an event loop, and for asyncio programs
    SavedModelSession   saved_model.py          a `Session` on a SavedModel, whose signatures are called by name
    Session             session.py              what users call: run, callables, partial runs, extend, reset, close
    SessionCallable     session_callable.py     a request that is named once and called with values
    callable_request    options/                such a request, from TensorFlow's CallableOptions
    FunctionRuntime     function_runtime.py     functions without a graph, instantiated and run under handles
    PartialRuns         partial_run.py          steps that are fed and fetched in several calls
    PreparedRequests    prepared_requests.py    the requests that are ready to run, by their names
    Prepared            preparation.py          one such request: its plans, feeds and fetches; `prepare` makes it
    Steps               steps.py                runs a step of a prepared request, with a time limit or a trace
    SessionWorkers      worker_protocol.py      what a session asks of its workers, wherever they are
    Workers             workers.py              those of its own process: one in a local session, else one per task
    LocalRequest        local_request.py        a request that is registered with these, and its steps
    WorkerSteps         worker_steps.py         one step over several workers: a `Step` on each of them
    GraphManager        graph_manager.py        one worker: its devices, their actors, and how its steps end
    RegisteredGraphs    registered_graphs.py    the graphs of one worker, by handle: their plans and their costs

One `session.run("y", {"x": value})`:

    Session.run                     the names of feeds, fetches and targets are the `RequestNames` of the request
      |
      |-- PreparedRequests.find     prepared before?
      |     `-- no: prepare
      |           |-- Placed.prune            the nodes that the request needs (devices/pipeline)
      |           `-- Workers.register        local: cuts them by device; several tasks: cuts them by task
      |                 `-- GraphManager      several tasks: gets a GraphDef and cuts that by device
      |                                       both: compiles a plan per device, kept under a handle
      |
      |-- fed_values                converts what the user feeds to tensors
      |
      `-- Steps.run                 one of three ways to run the plans:
            |-- a single plan without transfers runs in the task of the caller
            |-- loops that cannot be compiled run in the interpreter, on the actor of the client's device
            `-- else a `RequestStep`: a `Step`, or `WorkerSteps` over several tasks; plans run on the actors of devices
"""
