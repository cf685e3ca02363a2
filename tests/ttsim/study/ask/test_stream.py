"""Streams of questions: one answer a line, in order, whatever is in the lines and whichever process dies."""

import io
import json
import socket
from concurrent.futures import BrokenExecutor, Future
from threading import Thread

import pytest

from device.errors import DeviceError
from ttsim.__main__ import main
from ttsim.study.ask import stream
from ttsim.study.ask.stream import serve, serve_socket
from ttsim.study.ask.team import Team, team
from ttsim.study.executor import InProcess, Workers

VERSION = b'{"ask":"version"}\n'


class Dying(InProcess):
    """An executor that breaks at questions that hold a word, a number of times."""

    def __init__(self, word, times):
        self.word, self.times, self.broken, self.seen = word, times, False, []

    def submit(self, fn, /, texts, seconds):
        if self.broken:
            raise BrokenExecutor
        self.seen += texts
        future = Future()
        if self.times and any(self.word in text for text in texts):
            self.times -= 1
            self.broken = True
            future.set_exception(BrokenExecutor())
        else:
            future.set_result(['{"answer":' + text + "}" for text in texts])
        return future


def crew_of(executors):
    return Workers(start=iter(executors).__next__, slots=1, where="here")


def answers(lines, answering=None):
    written = []
    if answering is None:
        with team(processes=1, seconds=60) as own:
            serve(io.BytesIO(lines), written.append, own)
    else:
        serve(io.BytesIO(lines), written.append, answering)
    return [json.loads(line) for line in written]


def test_every_line_is_answered_in_order(monkeypatch):
    monkeypatch.setattr(stream, "LONGEST_LINE", 40)
    lines = [
        b'{"id":"a","ask":"version"}', b"", b"x", b"[1]", b'{"id":5,"protocol":2}', b"\xff", b"[" * 30, b" " * 100,
        b'{"id":[1],"op":"no"}', b'{"id":null}',
    ]  # fmt: skip
    got = answers(b"\n".join(lines))
    assert [each["id"] for each in got] == ["a", None, None, None, 5, None, None, None, [1], None]
    assert "version" in got[0]
    words = [each["error"] for each in got[1:]]
    for text, word in zip(
        words,
        ("a question is a line of JSON", "a question is a line of JSON", "a question is a JSON object, not [1]",
         "this is protocol 1", "a question is a line of JSON", "a question is a line of JSON",
         "a question has at most 40 bytes",
         "is no operation", "op or layer is missing"),
        strict=True,
    ):  # fmt: skip
        assert word in text


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b" \r\n", "the line is empty"),
        (b'{"op":}', "Expecting value at character 7"),
        (b'{"op":"\xff"}', "byte 8 of the line is not UTF-8"),
        (b"\xff\xfe{\0}\0", "byte 1 of the line is not UTF-8"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"id":' + b"9" * 5000 + b"}", "an integer has too many digits"),
        (b'{"op":"a","kwargs":{"dim":1,"dim":2}}', "an object has the key 'dim' twice"),
        (b'{"id":NaN}', "id must be a JSON value"),
        (b'{"id":[1e999]}', "id must be a JSON value"),
    ],
)
def test_a_line_that_cannot_be_read_is_answered_in_words_and_in_json(line, words):
    (got,) = answers(line)
    assert words in got["error"]
    assert got["id"] is None


def test_a_byte_order_mark_is_no_part_of_a_line():
    assert answers(b"\xef\xbb\xbf" + VERSION)[0]["version"]["protocol"] == 1


def test_a_repeated_question_is_answered_from_memory():
    executor = Dying("never", 0)
    got = answers(b'{"op":"a","id":1}\n{"id":2,"op":"a"}\n{"op":"b"}\n', Team(crew_of([executor]), 60))
    assert [each["answer"]["op"] for each in got] == ["a", "a", "b"]
    assert len(executor.seen) == 2


def test_a_process_that_dies_loses_no_line():
    crew = crew_of([Dying("b", 1), Dying("never", 0)])
    got = answers(b"".join(b'{"op":"%c"}\n' % name for name in b"abc"), Team(crew, 60))
    assert [each["answer"]["op"] for each in got] == ["a", "b", "c"]


def test_a_question_whose_process_always_dies_is_blamed_alone():
    crew = crew_of(Dying("b", 1) for _ in range(9))
    got = answers(b'{"op":"a"}\n{"op":"b"}\n{"op":"c"}\n{"op":"b"}\n', Team(crew, 60))
    assert [each.get("error", "") for each in got] == ["", "the process that answers this question died 3 times"] * 2


def test_whoever_does_not_read_ends_the_stream():
    def gone(line):
        raise BrokenPipeError

    with team(processes=1, seconds=60) as answering, pytest.raises(BrokenPipeError):
        serve(io.BytesIO(VERSION * 200), gone, answering)


def test_a_failure_while_answers_are_written_ends_the_stream_and_is_raised():
    class Failing(InProcess):
        def submit(self, fn, /, *given):
            future = Future()
            future.set_exception(ZeroDivisionError("by hand"))
            return future

    with pytest.raises(ZeroDivisionError, match="by hand"):
        answers(b'{"op":"a"}\n' * 200, Team(crew_of([Failing()]), 60))


def test_the_command_reads_a_file(tmp_path, capfdbinary):
    (tmp_path / "questions").write_bytes(VERSION + b'{"id":1,"op":"no"}')
    assert main(["ask", str(tmp_path / "questions"), "--processes", "1"]) == 0
    first, second = map(json.loads, capfdbinary.readouterr().out.splitlines())
    assert (first["version"]["protocol"], second["id"]) == (1, 1)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--timeout", "-1"], "--timeout must be a number of seconds"),
        (["--timeout", "nan"], "--timeout must be a number of seconds"),
        (["missing.jsonl"], "No such file"),
        (["--socket", "no/such/folder"], "No such file or directory: 'no/such/folder'"),
        (["a", "--socket", "b"], "give a file of questions or --socket, not both"),
        (["--processes", "0"], "processes must be an integer of at least 1"),
    ],
)
def test_the_command_refuses(words, message, capsys):
    assert main(["ask", *words]) == 2
    assert message in capsys.readouterr().err


def asks(path, lines):
    with socket.socket(socket.AF_UNIX) as own, own.makefile("rwb") as talk:
        own.connect(str(path))
        for line in lines:
            talk.write(line)
            talk.flush()
            yield json.loads(talk.readline())


@pytest.mark.skipif(not hasattr(socket, "AF_UNIX"), reason="this system has no Unix sockets")
def test_a_socket_answers_each_connection(tmp_path):
    path = tmp_path / "ask"
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path))  # of a process that is gone
    ready = Future()
    with team(processes=1, seconds=60) as answering:
        Thread(target=serve_socket, args=(path, answering, lambda: ready.set_result(None)), daemon=True).start()
        ready.result(20)
        assert path.stat().st_mode & 0o077 == 0
        first, second = asks(path, [VERSION] * 2), asks(path, [b"x\n", VERSION])
        assert [next(first)["id"], "error" in next(second), "version" in next(second), "version" in next(first)] == [
            None, True, True, True,
        ]  # fmt: skip
        with pytest.raises(DeviceError, match="another process answers at"):
            serve_socket(path, answering, list)
    (tmp_path / "file").write_text("")
    with pytest.raises(DeviceError, match="is there and no socket"):
        serve_socket(tmp_path / "file", answering, list)
