"""What `open_session` and its like open, for programs that do not run in trio: scripts, notebooks, asyncio.

BlockingSession       blocking.py          methods wait; a thread runs trio
AsyncioSession, ...   asyncio_session.py   methods are awaited in asyncio
guest_of_loop         guest.py             trio as a guest of asyncio's loop, and calls from there
parameters_of         parameters.py        parameters are said once, by what is opened, and shown by all
"""
