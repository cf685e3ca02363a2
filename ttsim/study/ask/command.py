"""The command ask."""

import argparse
import sys

from device.errors import ArgumentError
from ttsim.study.ask.stream import serve, serve_socket
from ttsim.study.ask.team import team


def ask_command(options: argparse.Namespace) -> int:
    """Answers the lines of a file or of stdin, or serves a socket until interrupted. Returns the exit code."""
    if not 0 <= options.timeout < float("inf"):
        raise ArgumentError(f"ask: --timeout must be a number of seconds, 0 for any, not {options.timeout}")
    if options.file is not None and options.socket is not None:
        raise ArgumentError("ask: give a file of questions or --socket, not both")
    with team(processes=options.processes, seconds=options.timeout) as answering:
        where = options.socket
        if where is not None:
            serve_socket(where, answering, lambda: options.quiet or sys.stderr.write(f"ttsim: answering at {where}\n"))
        elif options.file is None:
            serve(sys.stdin.buffer, _print, answering)
        else:
            with options.file.open("rb") as lines:
                serve(lines, _print, answering)
    return 0


def _print(line: bytes) -> None:
    sys.stdout.buffer.write(line)
    sys.stdout.buffer.flush()
