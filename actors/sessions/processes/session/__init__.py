"""The session's side of a session over worker processes.

open_remote_workers   opening.py          connects to workers, and refuses what cannot work there
spread_over           spread.py           which worker hosts which devices
RemoteWorkers         remote_workers.py   what the session asks of its workers, as messages
RemoteRequest         remote_request.py   a request that they have registered
SpreadStep            spread_step.py      a step of it
DeviceHomes           layouts.py          where devices are, and their incarnations
WorkerMember          worker_member.py    one worker
Losses                losses.py           what happens when one is lost or closes
check_edges           refused_edges.py    edges between workers that cannot be
"""
