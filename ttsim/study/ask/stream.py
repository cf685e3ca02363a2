"""Reads lines of questions and writes lines of answers in the same order."""

import json
import os
import socket
import stat
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from queue import Queue
from socketserver import StreamRequestHandler, ThreadingMixIn, UnixStreamServer
from threading import Thread
from typing import Any, BinaryIO, Final, NamedTuple, cast

from device.errors import ArgumentError, DeviceError, TTSimError, shown
from ttsim.study.ask.answer import refused
from ttsim.study.ask.question import PROTOCOL, WrongProtocolError, question_of
from ttsim.study.ask.team import Team

LONGEST_LINE: Final = 4 << 20  # bytes
WAITING: Final = 64  # lines that were read and not yet answered


class Asked(NamedTuple):
    """A question that waits for its answer."""

    text: str  # of its question
    id: Any
    answer: "Future[str]"


def lines_of(stream: BinaryIO) -> Iterator[bytes]:
    """The lines of a stream; a line that is too long is cut to `LONGEST_LINE` + 1 bytes."""
    while line := stream.readline(LONGEST_LINE + 1):
        rest = line
        while len(line) > LONGEST_LINE and not rest.endswith(b"\n"):
            rest = stream.readline(LONGEST_LINE) or b"\n"
        yield line


def serve(stream: BinaryIO, write: Callable[[bytes], object], team: Team) -> None:
    """Answers every line of a stream, including empty and invalid lines; raises OSError if nobody reads the answers.

    `write` gets one line at a time, with its newline, and must deliver the line at once.
    """
    waiting: Queue[Asked | None] = Queue(WAITING)
    broken: list[Exception] = []  # the first is raised in the end

    def answer_all() -> None:
        while (asked := waiting.get()) is not None:  # to the end, so that the reader never waits for room
            try:
                if not broken:
                    write(_line(asked.id, team.result(asked.text, asked.answer)))
            except Exception as error:
                broken.append(error)

    writer = Thread(target=answer_all, daemon=True)
    writer.start()
    for line in lines_of(stream):
        if broken:
            break
        waiting.put(_asked(line, team))
    waiting.put(None)
    writer.join()
    if broken:
        raise broken[0]


def _asked(line: bytes, team: Team) -> Asked:
    try:
        if len(line) > LONGEST_LINE:
            raise ArgumentError(f"a question has at most {LONGEST_LINE:,} bytes")
        question = question_of(line)
    except TTSimError as error:
        known: Future[str] = Future()
        known.set_result(refused(str(error)))
        return Asked("", error.id if isinstance(error, WrongProtocolError) else None, known)
    return Asked(question.text, question.id, team.ask(question.text))


def _line(given: Any, answer: str) -> bytes:
    """The line of an answer: the version of the protocol, the id of its question, and the answer's own fields."""
    return f'{{"protocol":{PROTOCOL},"id":{json.dumps(given)},{answer[1:]}\n'.encode()


def serve_socket(path: Path, team: Team, ready: Callable[[], object]) -> None:
    """Answers on a Unix socket until interrupted; every connection is a stream of its own.

    `ready` is called when connections are accepted. Raises ArgumentError if the system has no Unix sockets, DeviceError
    if the path exists and is not a socket, or another process serves the socket.
    """
    if not hasattr(socket, "AF_UNIX"):
        raise ArgumentError("ask: this system has no Unix sockets; give questions on stdin")
    _make_room(path)

    class Handler(StreamRequestHandler):
        def handle(self) -> None:
            try:
                serve(cast(BinaryIO, self.rfile), self.wfile.write, team)
            except OSError:  # the asker went away
                return

    before = os.umask(0o077)  # nobody else may ask
    try:
        server = _Server(str(path), Handler)
    except OSError as error:  # Python's own does not name the path
        raise OSError(error.errno, error.strerror or str(error), str(path)) from None
    finally:
        os.umask(before)
    with server:
        try:
            ready()
            server.serve_forever()
        finally:
            path.unlink(missing_ok=True)


class _Server(ThreadingMixIn, UnixStreamServer):
    daemon_threads = True
    block_on_close = False


def _make_room(path: Path) -> None:
    """Removes the socket of a process that has ended."""
    try:
        kind = path.stat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(kind):
        raise DeviceError(f"ask: {shown(str(path))} is there and no socket; give another path")
    with socket.socket(socket.AF_UNIX) as trial:
        if trial.connect_ex(str(path)) == 0:
            raise DeviceError(f"ask: another process answers at {shown(str(path))}; give another path")
    path.unlink()
