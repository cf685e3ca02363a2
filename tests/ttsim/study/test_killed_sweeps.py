"""Sweeps whose process is killed, and clusters whose worker is; each goes on where it was."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ttsim.study.sweep import sweep

VARY = {
    "shard_layout": [None, "HEIGHT_SHARDED", "BLOCK_SHARDED"],
    "act_block_h_override": [0, 32, 64, 96, 128],
    "math_fidelity": ["LoFi", "HiFi4"],
}
SCRIPT = f"""
import sys
from ttsim.study.sweep import sweep

if __name__ == "__main__":
    arguments = {{"scheduler": sys.argv[2]}} if len(sys.argv) > 2 else {{"processes": 2}}
    sweep(vary={VARY}, file=sys.argv[1], watch=lambda one: print(one.done, flush=True), **arguments)
"""
POINTS = 8 * 3 * 5 * 2  # and those of own configs
KILLS = 3
pytestmark = [pytest.mark.slow, pytest.mark.skipif(os.name != "posix", reason="SIGKILL is POSIX's")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    result = tmp_path_factory.mktemp("sweeps")
    (result / "script.py").write_text(SCRIPT)
    sweep(vary=VARY, file=result / "whole.jsonl", processes=1)
    return result


def started(folder, *arguments):
    root = str(Path(__file__).resolve().parents[3])
    command = [sys.executable, str(folder / "script.py"), *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": root})


def lines(path):
    return sorted(path.read_bytes().splitlines())


def test_killed_again_and_again(folder):
    path, chance = folder / "killed.jsonl", random.Random(20)
    seen = []
    for _ in range(KILLS):
        with started(folder, path) as run:
            seen.append(int(run.stdout.readline()))
            run.stdout.readline()  # until some rows are written
            time.sleep(chance.uniform(0, 0.05))
            run.kill()
    assert seen == sorted(seen)
    assert 0 < seen[-1] < POINTS
    with started(folder, path) as run:
        run.stdout.read()
    assert run.returncode == 0
    assert lines(path) == lines(folder / "whole.jsonl")
    assert POINTS + 1 < len(lines(path)) <= POINTS + 1 + 8


@pytest.mark.filterwarnings("ignore")
def test_a_worker_of_dask_is_killed(folder):
    distributed = pytest.importorskip("distributed")
    path = folder / "dask.jsonl"
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, protocol="tcp"
    ) as cluster:
        with started(folder, path, cluster.scheduler_address) as run:
            while int(run.stdout.readline()) < POINTS // 3:
                pass
            os.kill(next(iter(cluster.workers.values())).pid, signal.SIGKILL)
            run.stdout.read()
        assert run.returncode == 0
    assert lines(path) == lines(folder / "whole.jsonl")
