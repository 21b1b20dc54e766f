"""Prints the error that ends a command: one line on stderr and, for programs, an object on stdout."""

from __future__ import annotations

import os
import sys

import click

from .wrapping import fitted

DEBUG = "PARTITA_DEBUG"
"""the environment variable that asks for tracebacks"""


def print_exception(error: Exception, as_json: bool) -> int:
    """Prints what a command has raised, on request with its traceback; returns the exit code."""
    from .commands.failure import exit_code, one_line, status

    if os.environ.get(DEBUG):
        import traceback

        click.echo(fitted("".join(traceback.format_exception(error)).rstrip(), sys.stderr), err=True)
    print_error(one_line(error), exit_code(error), status(error), as_json)
    return exit_code(error)


def print_error(text: str, code: int, status: str, as_json: bool) -> None:
    """Prints one line on stderr, wrapped on a terminal, and with --json also an object on stdout, for programs."""
    message = " ".join(text.split())
    click.echo(fitted(f"partita: error: {message}", sys.stderr), err=True)
    if as_json:
        import json

        click.echo(json.dumps({"error": {"status": status, "exit_code": code, "message": message}}, indent=2))
