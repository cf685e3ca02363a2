"""The calls that a record asks about: Python over public names of ttsim, kept as data beside the answers."""

import gzip
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

FILE: Final = "calls.jsonl"
DEVICES: Final = ("wormhole_n150", "blackhole_p150")
CHUNK: Final = 50  # calls of a file


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """What a user might write, in two pieces.

    The text knows ``ttnn`` and ``ttsim``, ``np``, ``device`` (open, of the device that is asked), the functions of
    `tools.random_calls.drafts.PRELUDE`, and ``normal`` and ``integers`` of `tools.golden.answers.namespace`.
    """

    name: str  # Group and number: "conv2d/0017"
    given: str  # Statements before it: tensors, as a rule. A capture does not see these
    text: str  # Statements that are captured; the last ones assign ``y``
    values: tuple[str, ...] = ()  # Names of devices on which its values are computed, too
    l1_small_size: int = 32768  # Bytes, of the device

    @property
    def group(self) -> str:
        """The group of the name."""
        return self.name.split("/")[0]

    @property
    def number(self) -> int:
        """The number in the group."""
        return int(self.name.split("/")[1])

    @property
    def chunk(self) -> str:
        """The file of its answers: the group, and which calls of the group, by their numbers."""
        return f"{self.group}-{self.number // CHUNK:03}"


def write_calls(folder: Path, calls: Iterable[Call]) -> None:
    """Writes the calls of a record into its folder."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps(asdict(call), sort_keys=True) for call in sorted(calls, key=lambda call: call.name)]
    (folder / FILE).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")


def read_calls(folder: Path) -> list[Call]:
    """The calls of a record; raises ValueError if the folder holds no calls, or a line that is no call."""
    try:
        lines = (folder / FILE).read_text(encoding="utf-8").splitlines()
        return [Call(**{**fields, "values": tuple(fields["values"])}) for fields in map(json.loads, lines)]
    except FileNotFoundError:
        raise ValueError(f"{folder} holds no {FILE}, so it is no record; name the folder of a whole record") from None
    except (TypeError, KeyError, json.JSONDecodeError) as error:
        raise ValueError(f"{folder / FILE} has a line that is no call: {error}") from None


FILES: Final = ("recorded_runs.jsonl.gz", "cases.jsonl.gz")
DEVICE_OF: Final = {"wh": "wormhole_n150", "bh": "blackhole_p150"}
COMPUTE: Final = ("math_fidelity", "fp32_dest_acc_en", "packer_l1_acc", "math_approx_mode", "dst_full_sync_en")
SLICES: Final = {"H": "Conv2dDRAMSliceHeight", "W": "Conv2dDRAMSliceWidth"}
WINDOW: Final = {"stride": 1, "padding": 0, "output_padding": 0, "dilation": 1}  # with what they usually are
PREPARED_WITHOUT: Final = [
    "input_tensor",
    "weight_tensor",
    "bias_tensor",
    "output_padding",
    "mirror_kernel",
    "dtype",
    "memory_config",
]


def recorded_calls(folder: Path) -> list[Call]:
    """The recorded calls of a folder, in the order of its file; with values where the real library's are recorded."""
    path = next((folder / file for file in FILES if (folder / file).exists()), None)
    if path is None:
        raise ValueError(f"{folder} has no {FILES[0]}; name a folder of recorded calls, such as tests/data")
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [recorded_call(json.loads(line), number) for number, line in enumerate(lines)]


def recorded_call(record: Mapping[str, Any], number: int) -> Call:
    """A recorded call as Python."""
    case = record["case"]
    statements, arguments = list(_tensor_statements(case)), _arguments(case)
    if case.get("prep"):
        statements += _prepared(case, arguments)
    with_values = record["mode"] == "sim" and "error" not in record and not record.get("defect")
    return Call(
        name=f"recorded/{number:04}",
        given="\n".join(statements),
        text=f"y = ttnn.conv_transpose2d({_keywords(arguments)}, return_output_dim=True, return_weights_and_bias=True)",
        values=(DEVICE_OF[record["arch"]],) if with_values else (),
        l1_small_size=case.get("l1_small_size", 32768),
    )


def _tensor_statements(case: Mapping[str, Any]) -> Iterator[str]:
    """Statements that make the tensors of a case."""
    batch, height, width, channels = case.get("batch", 1), case["H"], case["W"], case["in_channels"]
    outputs, groups, kernel = case["out_channels"], case.get("groups", 1), _pair(case["kernel"])
    image, weights = (batch, height, width, channels), (channels, max(outputs // groups, 1), *kernel)
    scale = case.get("w_scale")
    if scale is None:
        scale = 1 / math.sqrt(channels // groups * kernel[0] * kernel[1])
    shapes = f"{image}, {weights}, {(1, 1, 1, outputs)}"
    yield f"x, w, b = normal({case.get('seed', 0)}, {shapes}, scales=[1, {scale!r}, 1])"
    shape = image if case.get("input_4d") else (1, 1, batch * height * width, channels)
    dtype, layout = case.get("input_dtype", "bfloat16"), case.get("input_layout", "ROW_MAJOR")
    host = f"ttnn.Tensor(x.reshape({shape}), ttnn.{dtype}, layout=ttnn.{layout}_LAYOUT)"
    yield f"x = {host}" + ("" if case.get("input_memory") == "host" else f".to(device, {_memory(case)})")
    dtype_name = case.get("weights_in_dtype", "bfloat16")
    yield f"w = ttnn.Tensor(w, ttnn.{dtype_name})"
    yield f"b = ttnn.Tensor(b, ttnn.{dtype_name})" if case.get("has_bias") else "b = None"


def _memory(case: Mapping[str, Any]) -> str:
    if not case.get("input_spec"):
        return "ttnn.L1_MEMORY_CONFIG" if case.get("input_memory") == "l1" else "ttnn.DRAM_MEMORY_CONFIG"
    scheme, shard, (column, row) = case["input_spec"]
    return f'shards("{scheme}", {list(shard)}, (0, 0, {column}, {row}))'


# Fields of configs -> the key of a case, and the text of its value.
FIELDS: Final = {
    "padding_mode": ("padding_mode", "ttnn.PaddingMode.{}"),
    "weights_dtype": ("weights_dtype", "ttnn.{}"),
    "shard_layout": ("shard_layout", "ttnn.TensorMemoryLayout.{}_SHARDED"),
    "act_block_h_override": ("act_block_h_override", "{}"),
    "output_layout": ("output_layout", "ttnn.{}_LAYOUT"),
    "activation": ("activation", "ttnn.UnaryWithParam(ttnn.UnaryOpType['{}'.upper()])"),
}


def _arguments(case: Mapping[str, Any]) -> dict[str, str]:
    """The keyword arguments of a case, as text."""
    compute = {name: case[name] for name in COMPUTE if case.get(name) is not None}
    if "math_fidelity" in compute:
        compute["math_fidelity"] = f"ttnn.MathFidelity.{compute['math_fidelity']}"
    settings = f"ttnn.init_device_compute_kernel_config(device.arch(), {_keywords(compute)})" if compute else "None"
    given = {**case, **case.get("conv_config", {})}
    fields = dict(case.get("conv_config", {}))
    fields |= {name: text.format(given[key]) for name, (key, text) in FIELDS.items() if given.get(key)}
    arguments: dict[str, object] = {"input_tensor": "x", "weight_tensor": "w", "bias_tensor": "b", "device": "device"}
    arguments |= {name: case[name] for name in ("in_channels", "out_channels")} | {"batch_size": case.get("batch", 1)}
    arguments |= {"input_height": case["H"], "input_width": case["W"], "kernel_size": _pair(case.get("kernel", 1))}
    arguments |= {name: _pair(case.get(name, usual)) for name, usual in WINDOW.items()}
    arguments |= {
        "groups": case.get("groups", 1),
        "dtype": f"ttnn.{case['dtype']}" if case.get("dtype") else None,
        "conv_config": f"ttnn.Conv2dConfig({_keywords(fields)})" if fields else None,
        "compute_config": settings,
        "dram_slice_config": _slices(case.get("slice")),
    }
    if case.get("mirror_kernel") is not None:
        arguments["mirror_kernel"] = case["mirror_kernel"]
    if case.get("memory_config"):
        arguments["memory_config"] = f"ttnn.{case['memory_config']}"
    return {name: f"{value}" for name, value in arguments.items()}


def _slices(cut: Any) -> str:
    if cut is None:
        return "None"
    if cut == "l1_full":
        return "ttnn.Conv2dL1FullSliceConfig"
    number = f", num_slices={cut[1]}" if cut[1] is not None else ""
    return f"ttnn.Conv2dSliceConfig(slice_type=ttnn.{SLICES[cut[0]]}{number})"


def _prepared(case: Mapping[str, Any], arguments: Mapping[str, str]) -> list[str]:
    """Statements that prepare weights and bias before the call."""
    shared = {name: value for name, value in arguments.items() if name not in PREPARED_WITHOUT}
    shared |= {"input_memory_config": "x.memory_config()", "input_layout": "x.layout", "input_dtype": "x.dtype"}
    shared["output_dtype"] = arguments["dtype"]
    own = {name: arguments[name] for name in ("output_padding", "mirror_kernel") if name in arguments}
    own |= {"weight_tensor": "w", "weights_format": "'IOHW'", "has_bias": f"{bool(case.get('has_bias'))}"}
    lines = [f"w = ttnn.prepare_conv_transpose2d_weights({_keywords(own | shared)})"]
    if case.get("has_bias"):
        lines.append(f"b = ttnn.prepare_conv_transpose2d_bias({_keywords({'bias_tensor': 'b'} | shared)})")
    return lines


def _keywords(values: Mapping[str, object]) -> str:
    return ", ".join(f"{name}={value}" for name, value in values.items())


def _pair(value: Any) -> list[int]:
    return [value, value] if isinstance(value, int) else list(value)
