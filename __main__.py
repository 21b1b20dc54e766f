"""`python -m partita` and the command `partita`: the command line as a process, which Ctrl-C ends with exit code 130.

Only what every Python process has is imported here, nothing of `__future__` or of the package: `main` sees Ctrl-C
during all other imports.
"""

import os
import sys

INTERRUPTED = 130


def main() -> None:
    """Runs the command line and ends the process."""
    try:
        code = _command()
        # What is left is Python's own end, where a handler would print a traceback; Ctrl-C may still end the process.
        _on_ctrl_c("SIG_DFL")
    except KeyboardInterrupt:
        _on_ctrl_c("SIG_IGN")
        _end_interrupted()
    sys.exit(code)


def _command() -> int:
    from .scenarios.interrupts import Interrupts

    with Interrupts().noted():
        from .scenarios.cli import main as command

    return command()


def _on_ctrl_c(action: str) -> None:
    """Gives SIGINT another action, unless it is ignored, as in background jobs."""
    import signal

    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, getattr(signal, action))


def _end_interrupted() -> None:
    """Says so on stderr, with --json also on stdout for programs, and ends the process."""
    print("partita: error: interrupted", file=sys.stderr, flush=True)
    if "--json" in sys.argv[1:]:
        import json

        error = {"status": "CANCELLED", "exit_code": INTERRUPTED, "message": "interrupted"}
        print(json.dumps({"error": error}, indent=2))
    try:
        sys.stdout.flush()
    except OSError:  # its reader has gone
        pass
    # sys.exit would let Python kill itself with SIGINT, if Ctrl-C came while an extension module was initialised.
    os._exit(INTERRUPTED)


if __name__ == "__main__":
    main()
