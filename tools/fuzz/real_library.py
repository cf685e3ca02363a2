"""The real library on a mock device, in a process of its own."""

import json
import os
import select
import subprocess
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import IO, Any, Final

CLUSTERS: Final = {"wormhole_n150": "wh", "blackhole_p150": "bh"}  # by device
LIMIT_SECONDS: Final = 60.0  # a call that takes longer hangs
QUESTIONS: Final = 150  # of one process
QUIET: Final = {
    "TT_LOGGER_LEVEL": "FATAL", "TT_METAL_LOGGER_LEVEL": "FATAL", "LOGURU_LEVEL": "ERROR", "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}  # fmt: skip


def is_there(folder: str) -> bool:
    """Whether a folder holds the real library: its Python, a mock device of each kind, and a cache of its compiler."""
    home = Path(folder)
    clusters = [home / "clusters" / f"{name}.yaml" for name in CLUSTERS.values()]
    return bool(folder) and all(path.exists() for path in (home / "venv" / "bin" / "python", *clusters))


class RealLibrary:
    """A process that lasts from question to question, until it crashes or hangs."""

    def __init__(self, folder: str, device: str) -> None:
        self.home, self.device = Path(folder), device
        self.process: subprocess.Popen[str] | None = None
        self.asked = 0

    def answers(self, question: dict[str, Any]) -> list[dict[str, Any]] | None:
        """The answers to the steps of a question; None where the library crashes or hangs."""
        if self.asked >= QUESTIONS:
            self.close()
        source, sink = self._pipes()
        self.asked += 1
        with suppress(BrokenPipeError):
            source.write(json.dumps(question) + "\n")
            source.flush()
        line = sink.readline() if select.select([sink], [], [], LIMIT_SECONDS)[0] else ""
        if not line.endswith("\n"):
            self.close()
            return None
        answer = json.loads(line)
        if "last" in answer:
            self.close()
        answers: list[dict[str, Any]] = answer["answers"]
        return answers

    def close(self) -> None:
        """Ends the process."""
        if self.process is not None:
            self.process.kill()
            self.process.communicate()
        self.process, self.asked = None, 0

    def _pipes(self) -> tuple[IO[str], IO[str]]:
        """The input and the output of the process, which is started where there is none."""
        if self.process is None:
            environment = os.environ | QUIET | {
                "TT_METAL_MOCK_CLUSTER_DESC_PATH": str(self.home / "clusters" / f"{CLUSTERS[self.device]}.yaml"),
                "TT_METAL_CACHE": str(self.home / "cache"),
            }  # fmt: skip
            self.process = subprocess.Popen(
                [str(self.home / "venv" / "bin" / "python"), "-B", str(Path(__file__).with_name("real_process.py"))],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment,
                cwd=self.home / "work", text=True,
            )  # fmt: skip
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        return self.process.stdin, self.process.stdout


@cache
def real_library(folder: str, device: str) -> RealLibrary:
    """The one process of a device."""
    return RealLibrary(folder, device)
