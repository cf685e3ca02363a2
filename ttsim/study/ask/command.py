"""The command ask."""

import argparse
import sys

from device.errors import ArgumentError
from ttsim.study.ask.stream import serve, serve_socket
from ttsim.study.ask.team import team


def ask_command(options: argparse.Namespace) -> int:
    """Answers the lines of stdin, or of a socket until interrupted. Returns the exit code."""
    if not 0 <= options.timeout < float("inf"):
        raise ArgumentError(f"ask: --timeout must be a number of seconds, 0 for any, not {options.timeout}")
    with team(processes=options.processes, seconds=options.timeout) as answering:
        if options.socket is None:
            serve(sys.stdin.buffer, _print, answering)
        else:
            where = options.socket
            serve_socket(where, answering, lambda: options.quiet or sys.stderr.write(f"ttsim: answering at {where}\n"))
    return 0


def _print(line: bytes) -> None:
    sys.stdout.buffer.write(line)
    sys.stdout.buffer.flush()
