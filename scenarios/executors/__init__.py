"""Where the calls of a sweep or a plan run: here, in processes of this machine, or on a dask cluster.

serial.py       one call after another, in this process
processes.py    worker processes that are started again when one dies
in_flight.py    calls handed to any executor, few at a time; what each returned
dask_cluster.py a cluster of dask.distributed, given or local
chosen.py       the executor that the flags of a command name
"""
