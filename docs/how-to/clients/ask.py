"""A client of `ttsim ask` in Python: which shard layout should a compiler choose for a transposed convolution?"""

import json
import subprocess
import sys


class Asker:
    """Keeps one `ttsim ask` and its processes alive; answers come in the order of the questions."""

    def __init__(self):
        command = [sys.executable, "-m", "ttsim", "ask"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, **question):
        """The answer to one question."""
        self.process.stdin.write(json.dumps(question) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise EOFError("ttsim ask has ended; its stderr says why")
        answer = json.loads(line)
        if "error" in answer:
            raise ValueError(answer["error"])
        return answer

    def close(self):
        """Ends the process, which answers all that it was asked first."""
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


def convolution(**arguments):
    """A transposed convolution of 256 to 128 channels with kernel and stride 2 on 64x64 pixels."""
    image = {"shape": [1, 1, 4096, 256], "dtype": "ttnn.bfloat16", "layout": "ttnn.TILE_LAYOUT"}
    kwargs = {
        "input_tensor": {"ttnn.TensorSpec": image},
        "weight_tensor": {"ttnn.TensorDescription": {"shape": [256, 128, 2, 2]}},
        "in_channels": 256,
        "out_channels": 128,
        "batch_size": 1,
        "input_height": 64,
        "input_width": 64,
        "kernel_size": [2, 2],
        "stride": [2, 2],
        "dram_slice_config": "ttnn.Conv2dL1FullSliceConfig",
    }
    return {"op": "conv_transpose2d", "device": "n150", "kwargs": kwargs | arguments}


def layout(name):
    """The argument that chooses a shard layout."""
    return {"conv_config": {"ttnn.Conv2dConfig": {"shard_layout": f"ttnn.TensorMemoryLayout.{name}_SHARDED"}}}


asker = Asker()
names = ["BLOCK", "HEIGHT"]
choice = asker.ask(**convolution(), choose=[{"kwargs": layout(name)} for name in names])["choice"]
for row in choice["ranked"]:
    tie = " (a tie)" if row["tie"] else ""
    print(f"{names[row['candidate']]}: {row['runtime']:,} ns, {row['times_best']:.2f} times the best{tie}")
memory = asker.ask(ask="constraints", **convolution(**layout("HEIGHT")))["constraints"]
print(f"HEIGHT: at most {memory['resource_usage']['peak_memory_usage_per_core']:,} bytes of L1 of a core")
asker.close()
