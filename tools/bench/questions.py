"""Questions to `ttsim ask`, in bulk: milliseconds of each, on all cores, new ones and repeated ones."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from random import Random
from threading import Thread
from typing import IO, Final

from tools.bench.figure import Figure

NEW: Final = 600
REPEATED: Final = 6000
FIRST: Final = 32  # questions that start the processes, and do not count
LIMIT_NEW_MS: Final = 1000 / 150  # on two cores
LIMIT_REPEATED_MS: Final = 1000 / 2000


def questions(count: int, seed: int) -> list[bytes]:
    """Transposed convolutions in bfloat16 from DRAM, as lines; all differ."""
    random = Random(seed)
    lines = []
    for number in range(count):
        inputs, outputs = (32 * random.randint(1, 16) for _ in range(2))
        height, width, side = random.randint(8, 96), random.randint(8, 96), random.choice((2, 3, 4))
        image = {"shape": [1, 1, height * width, inputs], "dtype": "ttnn.bfloat16", "layout": "ttnn.ROW_MAJOR_LAYOUT"}
        kwargs = {
            "input_tensor": {"ttnn.TensorSpec": image},
            "weight_tensor": {"ttnn.TensorDescription": {"shape": [inputs, outputs, side, side]}},
            "in_channels": inputs,
            "out_channels": outputs,
            "batch_size": 1,
            "input_height": height,
            "input_width": width,
            "kernel_size": [side, side],
            "stride": [random.choice((1, 2))] * 2,
        }
        lines.append(json.dumps({"id": number, "op": "conv_transpose2d", "kwargs": kwargs}).encode() + b"\n")
    return lines


def answered_ms(first: Sequence[bytes], lines: Sequence[bytes]) -> float:
    """Milliseconds a line, from the answer to the last of the first lines to the answer to the last line."""
    command = [sys.executable, "-m", "ttsim", "ask"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        source, answers = process.stdin, process.stdout
        if source is None or answers is None:
            raise AssertionError("both are pipes")
        source.write(b"".join(first))
        source.flush()
        for _ in first:
            answers.readline()
        start = time.perf_counter()
        feeder = Thread(target=_feed, args=(source, lines))
        feeder.start()
        for _ in lines:
            answers.readline()
        taken = time.perf_counter() - start
        feeder.join()
        source.close()
        return 1e3 * taken / len(lines)


def _feed(source: IO[bytes], lines: Sequence[bytes]) -> None:
    """Writes lines while their answers are read."""
    source.write(b"".join(lines))
    source.flush()


def bench_questions(repeats: int) -> Iterator[Figure]:
    """Memory and time of new calls, and of calls that were asked about before."""
    first, new = questions(FIRST, seed=0), questions(NEW, seed=1)
    least = min(answered_ms(first, new) for _ in range(repeats))
    yield Figure("a new conv_transpose2d", "answer", least, limit=LIMIT_NEW_MS)
    again = [first[number % FIRST] for number in range(REPEATED)]
    least = min(answered_ms(first, again) for _ in range(repeats))
    yield Figure("a repeated one", "answer", least, limit=LIMIT_REPEATED_MS)
