"""The real library's answers to queries: a program for the Python that has its wheel, on a mock device.

A question is a line of JSON, and so is its answer. {"l1_small_size", "steps": [{"made", "text", "arguments", "results",
"dropped"}], "placed"}: a step makes the tensors of ``made`` and calls ``text``, which names ``results``. Without
``placed`` nothing is placed, and the tensors of ``made`` count in the peaks. With it results are placed on top of what
lies there, the ``arguments`` have no memory of their own, as in tt-metal's query, and ``dropped`` are freed afterwards.
"""

import gc
import importlib
import json
import os
import re
import resource
import sys
import types
from typing import Any

import numpy as np

Answer = dict[str, Any]

MEMORIES = ("DRAM", "L1")


class Names:
    """The real library under ttsim's name, with one function of ttsim's own."""

    def __init__(self, ttnn: Any) -> None:
        self.ttnn = ttnn

    def __getattr__(self, name: str) -> Any:
        return getattr(self.ttnn, name)

    def from_numpy(
        self, array: Any, dtype: Any, *, layout: Any = None, device: Any = None, memory_config: Any = None
    ) -> Any:
        """A tensor on the host, or on the device."""
        host = self.ttnn.Tensor(array, dtype, layout=layout or self.ttnn.ROW_MAJOR_LAYOUT)
        return host if device is None else host.to(device, memory_config or self.ttnn.DRAM_MEMORY_CONFIG)


class Planner:
    """Answers of the real library on one device."""

    def __init__(self, ttnn: Any, l1_small_size: int) -> None:
        self.ttnn = ttnn
        self.device = ttnn.open_device(device_id=0, l1_small_size=l1_small_size)
        self.device.disable_and_clear_program_cache()
        self.names: dict[str, Any] = {
            "ttsim": Names(ttnn), "np": np, "device": self.device, "numbers": self.numbers, "cores": self.cores,
            "shards": self.shards,
        }  # fmt: skip
        self.bases = {kind: self.base(kind) for kind in MEMORIES}

    def numbers(self, _seed: int, shape: tuple[int, ...], _kind: str = "") -> Any:
        """Zeros: no plan depends on values."""
        return np.zeros(shape, np.float32)

    def cores(self, *rectangles: tuple[int, int, int, int]) -> Any:
        """Cores in rectangles."""
        core, span = self.ttnn.CoreCoord, self.ttnn.CoreRange
        return self.ttnn.CoreRangeSet([span(core(x0, y0), core(x1, y1)) for x0, y0, x1, y1 in rectangles])

    def shards(
        self, kind: str, shape: tuple[int, int], *rectangles: Any, orientation: str = "ROW_MAJOR", buffer: str = "L1"
    ) -> Any:
        """A sharded memory config."""
        ttnn, cores = self.ttnn, self.cores(*rectangles)
        spec = ttnn.ShardSpec(cores, list(shape), getattr(ttnn.ShardOrientation, orientation))
        layout = getattr(ttnn.TensorMemoryLayout, f"{kind}_SHARDED")
        return ttnn.MemoryConfig(layout, getattr(ttnn.BufferType, buffer), spec)

    def base(self, kind: str) -> int:
        """The address of the first byte of a memory; the allocator counts from 0."""
        ttnn = self.ttnn
        config = ttnn.MemoryConfig(ttnn.TensorMemoryLayout.INTERLEAVED, getattr(ttnn.BufferType, kind))
        tensor = self.names["ttsim"].from_numpy(
            np.zeros((32, 32), np.float32), ttnn.bfloat16, device=self.device, memory_config=config
        )
        block = next(block for block in self.blocks(kind) if block["allocated"] == "yes")
        return int(tensor.buffer_address()) - int(block["address"])

    def blocks(self, kind: str) -> Any:
        """The allocator's blocks."""
        return self.ttnn.get_memory_view(self.device, getattr(self.ttnn.BufferType, kind)).block_table

    def state(self) -> Answer:
        """Regions of the memories that are in use, (start, end) by address."""
        regions: Answer = {}
        for kind in MEMORIES:
            used = [block for block in self.blocks(kind) if block["allocated"] == "yes"]
            starts = sorted((self.bases[kind] + int(block["address"]), int(block["size"])) for block in used)
            joined: list[list[int]] = []
            for start, size in starts:
                if joined and joined[-1][1] == start:
                    joined[-1][1] += size
                else:
                    joined.append([start, start + size])
            if joined:
                regions[kind] = joined
        return regions

    def bank_bytes(self, spec: Any) -> int:
        """Bytes of a bank that a tensor like this takes: 0 of an empty tensor, which has no buffer."""
        graph = self.ttnn.graph
        graph.begin_graph_capture(graph.RunMode.NO_DISPATCH)
        try:
            tensor = self.ttnn.allocate_tensor_on_device(spec, self.device)
        finally:
            nodes = graph.end_graph_capture()
        del tensor
        sizes = (int(node["params"]["max_size_per_bank"]) for node in nodes if node["node_type"] == "buffer_allocate")
        return next(sizes, 0)

    def answer(self, step: Answer, *, placed: bool) -> Answer:
        """What the library answers to a call."""
        graph, names = self.ttnn.graph, self.names
        own = {name: names[name] for name in step["arguments"]} if placed else {}
        try:
            if own:
                graph.begin_graph_capture(graph.RunMode.NO_DISPATCH)
                try:
                    for name, tensor in own.items():
                        names[name] = self.ttnn.allocate_tensor_on_device(tensor.spec, self.device)
                finally:
                    graph.end_graph_capture()
            graph.begin_graph_capture(graph.RunMode.NORMAL if placed else graph.RunMode.NO_DISPATCH)
            try:
                try:
                    exec(step["made"], names)
                except Exception as error:
                    return {"unmade": str(error)}
                exec(step["text"], names)
            finally:
                nodes = graph.end_graph_capture()
            results = [names[name] for name in step["results"]]
            usage = graph.extract_resource_usage_per_core(nodes)
            peaks = [usage.peak_cb, usage.peak_l1, usage.peak_total]
            return self.accepted([x for x in results if "DEVICE" in str(x.storage_type())], peaks)
        except Exception as error:
            return refused(error)
        finally:
            names.update(own)

    def accepted(self, results: list[Any], peaks: list[int]) -> Answer:
        """The answer that a call would run."""
        found: Answer = {"specs": [], "places": []}
        output = 0
        for tensor in results:
            size, kind = self.bank_bytes(tensor.spec), str(tensor.memory_config().buffer_type).split(".")[-1]
            output += size if kind != "DRAM" else 0
            found["specs"].append(described(tensor))
            address = int(tensor.buffer_address())
            # A view of an argument has address 0, and the argument's buffer, of which nothing tells the size
            found["places"].append([kind, address, size if address else 0])
        return found | {"usage": [*peaks, output]}

    def answers(self, question: Answer) -> list[Answer]:
        """The answers to all steps, until a tensor cannot be made."""
        placed, answers = question["placed"], list[Answer]()
        for step in question["steps"]:
            answers.append(self.answer(step, placed=placed))
            for name in step["dropped"]:
                self.names.pop(name, None)
            gc.collect()
            if placed:
                answers[-1]["state"] = self.state()
            if "unmade" in answers[-1] or ("error" in answers[-1] and step["results"] and placed):
                break
        return answers

    def close(self) -> None:
        """Frees everything."""
        self.names.clear()
        gc.collect()
        self.ttnn.close_device(self.device)


def described(tensor: Any) -> Answer:
    """The spec of a tensor."""
    words: Answer = {name: list(getattr(tensor, name)) for name in ("shape", "padded_shape")}
    words |= {name: str(getattr(tensor, name)) for name in ("dtype", "layout")}
    return words | {"memory_config": re.sub(r",nd_shard_spec=.*$", ")", str(tensor.memory_config()))}


def refused(error: Exception) -> Answer:
    """The answer that a call would fail; its text ends where addresses of a backtrace begin."""
    text = str(error).split("\nbacktrace:")[0].strip()
    absent = isinstance(error, AttributeError | NameError | ImportError)
    return {"error": text[:1200], "kind": "absent" if absent else type(error).__name__}


def serve() -> None:
    """Answers one line after another; after a device that does not close the process ends."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # the library writes on standard output
    ttnn = importlib.import_module("ttnn")
    torch = types.ModuleType("torch")  # the wheel asks after torch's tensors wherever it takes an array
    vars(torch)["Tensor"] = type("Tensor", (), {})
    sys.modules["torch"] = torch
    for line in sys.stdin:
        question = json.loads(line)
        planner = Planner(ttnn, question["l1_small_size"])
        answer: Answer = {"answers": planner.answers(question)}
        try:
            planner.close()
        except Exception:
            answer["last"] = True
        print(json.dumps(answer), file=answers, flush=True)
        if "last" in answer:
            break
    os._exit(0)


if __name__ == "__main__":
    serve()
