"""Sessions over worker processes of dask.distributed: who connects to whom, and how messages travel (extra `dask`).

    in the process of the session
    connect_workers      client.py          an address, a Client or a number of processes becomes live workers
    DaskClient           dask_client.py     what a session asks of dask: versions, the plugin, who joins and leaves
    start_local_cluster  local_cluster.py   processes on this machine, for a number
    check_workers        probing.py         the versions of workers, asked before anything of Partita runs there

    in a worker
    PartitaPlugin        plugin.py          what dask installs in each worker, also in those that start later
    Acceptor             acceptor.py        takes connections over from dask, and connects to other workers
    TrioThread           trio_thread.py     the thread in which a worker runs trio
    WorkerNode           node.py            one session in one worker: its connection, and those to other workers

    in both
    Connection           connection.py      the way to one other process, as trio sees it: post, on_messages, on_lost
    LoopBridge           bridge.py          the threads of trio and asyncio call each other in batches
    CommLink             link.py            the asyncio side: encodes, writes, reads, decodes; the heartbeat
    FramedStream         framing.py         frames of bytes on the stream of a comm of dask
    Greeting             greeting.py        how two processes meet
    versions_here        versions.py        what must be equal in all processes, and the id of a process

A message on its way:

    Connection.post -> end of the trio tick -> LoopBridge -> CommLink.send -> encode, one frame -> the comm's stream
      -> CommLink of the other process -> decode -> LoopBridge -> on_messages, with all messages that have arrived

The comm is made and encrypted by dask, and handed over by one dask message (`op`: partita). After that nothing of dask
reads or writes it, because dask unpickles what looks pickled, whatever serializers it is given; see framing.py.
"""
