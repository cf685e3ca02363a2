"""The client in C++ of docs/how-to/clients; that in Python runs with its page."""

import shutil
import socket
import subprocess
from concurrent.futures import Future
from pathlib import Path
from threading import Thread

import pytest

from ttsim.study.ask.answer import answer_of
from ttsim.study.ask.stream import serve_socket
from ttsim.study.ask.team import team

CLIENTS = Path(__file__).resolve().parents[4] / "docs" / "how-to" / "clients"
COMPILER = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")


@pytest.mark.skipif(COMPILER is None, reason="there is no C++ compiler here")
@pytest.mark.skipif(not hasattr(socket, "AF_UNIX"), reason="this system has no Unix sockets")
def test_the_cpp_client_gets_nanoseconds(tmp_path):
    subprocess.run(
        [COMPILER, "-std=c++17", "-Wall", "-Wextra", "-Werror", "-o", tmp_path / "client", CLIENTS / "ask.cpp"],
        check=True, timeout=120,
    )  # fmt: skip
    tensor = {"logical_shape": [1, 16, 256, 64], "tensor_layout": {"dtype": 0}}
    known = answer_of({"ask": "runtime", "op": "exp", "args": [tensor], "device": "n150"})["runtime"]["runtime"]
    ready = Future()
    with team(processes=1, seconds=60) as answering:
        work = serve_socket, (tmp_path / "ask", answering, lambda: ready.set_result(None))
        Thread(target=work[0], args=work[1], daemon=True).start()
        ready.result(20)
        command = [tmp_path / "client", tmp_path / "ask"]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == f"ttnn::exp {known} ns\nttnn::no_such_operation 0 ns\n"
    alone = subprocess.run([tmp_path / "client", tmp_path / "none"], capture_output=True, text=True, timeout=60)
    assert (alone.returncode, alone.stdout, "nobody answers at" in alone.stderr) == (1, "", True)
