"""The table of drawn operations, and the exported names that no step calls, each with its reason."""

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Final

from tools.random_calls import convolutions, creation, data_movement as moving, device_calls, elementwise, windows
from tools.random_calls.drafts import Draft, Step

Operation = Callable[[Draft], Step | None]


def _each(draw: Callable[..., Step | None], *names: str, option: str = "function") -> dict[str, Operation]:
    """Operations that one function draws, by their names."""
    return {name: partial(draw, **{option: name}) for name in names}


OPERATIONS: Final[Mapping[str, Operation]] = MappingProxyType(
    {
        **_each(creation.from_numpy, "from_numpy", "as_tensor", "from_torch"),
        **_each(creation.filled, *creation.FILLERS),
        **{f"{name}_like": partial(creation.like, function=name) for name in creation.FILLERS},
        "arange": creation.arange,
        "rand": creation.rand,
        "allocate_tensor_on_device": creation.allocate_tensor_on_device,
        "allocate_tensor_on_host": creation.allocate_tensor_on_host,
        "to_layout": moving.to_layout,
        "to_memory_config": moving.to_memory_config,
        "interleaved_to_sharded": moving.interleaved_to_sharded,
        "sharded_to_interleaved": moving.sharded_to_interleaved,
        "reshard": moving.reshard,
        **_each(moving.elsewhere, "move", "reallocate"),
        "deallocate": moving.deallocate,
        **_each(moving.tilized, *moving.TILIZING),
        **_each(moving.untilized, "untilize", "untilize_with_unpadding"),
        "permute": moving.permute,
        "transpose": moving.transpose,
        "reshape": moving.reshape,
        "squeeze": moving.squeeze,
        "unsqueeze": moving.unsqueeze,
        "unsqueeze_to_4D": moving.unsqueeze_to_4d,
        "slice": moving.slice_,
        "Tensor.__getitem__": moving.index,
        "pad": moving.pad,
        "concat": moving.concat,
        "stack": moving.stack,
        "typecast": moving.typecast,
        "to_dtype": moving.to_dtype,
        "from_device": moving.from_device,
        "to_device": moving.to_device,
        "dump_tensor": moving.dump_tensor,
        "copy.copy": moving.copies,
        **_each(elementwise.unary, *elementwise.UNARY),
        **_each(elementwise.binary, *(f"{name}{mark}" for name in elementwise.BINARY for mark in ("", "_"))),
        **_each(elementwise.product, "matmul", "linear"),
        **_each(convolutions.convolution, *convolutions.CONVOLUTIONS),
        "convolution again": convolutions.again,
        "max_pool2d": windows.max_pool2d,
        "upsample": windows.upsample,
        "fold": windows.fold,
        "experimental.convert_to_hwc": windows.convert_to_hwc,
        "experimental.convert_to_chw": windows.convert_to_chw,
        "onednn": device_calls.onednn,
        "program cache": device_calls.program_cache,
        "begin_trace_capture": device_calls.trace,
        **_each(device_calls.look, "graph capture", "estimate_cycles", "profile", option="kind"),
        "query_op_constraints": device_calls.query_op_constraints,
        "question": device_calls.question,
        "filled L1": creation.filled_l1,
        "command_queue": creation.command_queue,
    }
)
WEIGHTS: Final[Mapping[str, float]] = MappingProxyType(
    {
        "from_numpy": 14.0,
        "conv_transpose2d": 8.0,
        "conv2d": 5.0,
        "convolution again": 4.0,
        "max_pool2d": 2.5,
        "concat": 2.5,
        **dict.fromkeys(("to_memory_config", "to_layout", "conv1d", "slice", "pad", "reshape", "permute"), 2.0),
        **dict.fromkeys(("fold", "upsample"), 1.5),
        **dict.fromkeys(elementwise.UNARY, 0.4),
        **dict.fromkeys((f"{name}{mark}" for name in elementwise.BINARY for mark in ("", "_")), 0.6),
        **dict.fromkeys(("zeros", "ones", "empty", "full", "zeros_like", "ones_like", "empty_like"), 0.3),
        **dict.fromkeys(("from_torch", "as_tensor", "arange", "rand", "profile", "query_op_constraints"), 0.3),
        **dict.fromkeys(("estimate_cycles", "graph capture", "command_queue", "onednn", "dump_tensor"), 0.3),
    }
)  # 1 for all others

BESIDE: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "allocate_tensor_on_device": ("copy_host_to_device_tensor",),
        "allocate_tensor_on_host": ("copy_device_to_host_tensor",),
        "dump_tensor": ("load_tensor",),
        "begin_trace_capture": ("end_trace_capture", "execute_trace", "release_trace"),
        "graph capture": ("graph.begin_graph_capture", "graph.end_graph_capture"),
        "conv2d": ("prepare_conv_weights", "prepare_conv_bias"),
        "conv_transpose2d": ("prepare_conv_transpose2d_weights", "prepare_conv_transpose2d_bias"),
        "onednn": tuple(f"onednn.conv_transpose{kind}" for kind in device_calls.ONEDNN),
        "question": (
            "create_sharded_memory_config",
            "element_size",
            "from_host_shards",
            "get_conv_output_dim",
            "get_current_command_queue_id_for_thread",
            "get_device_tensors",
            "get_memory_config",
            "get_memory_view",
            "has_storage_type_of",
            "has_tile_padding",
            "is_sharded",
            "is_tensor_storage_on_device",
            "is_trace_capture_active",
            "num_cores_to_corerangeset",
            "record_event",
            "synchronize_device",
            "tile_size",
            "wait_for_event",
        ),
    }
)  # other functions that the steps of an operation call

# Why no step calls an exported function.
_REASONS: Final = {
    "opens, closes or names devices; a sequence has one device from its beginning to its end": (
        "CloseDevice CreateDevice close_device close_mesh_device open_mesh_device open_device manage_device "
        "GetDefaultDevice SetDefaultDevice GetNumAvailableDevices GetNumPCIeDevices GetPCIeDeviceID device_names "
        "get_arch_name get_device_ids get_num_devices get_pcie_device_ids"
    ),
    "settings of the session, of meshes and of device files, which no call of a sequence reads": (
        "is_blackhole is_wormhole_b0 using_distributed_env set_fabric_config load_config_from_dictionary "
        "load_config_from_json_file manage_config save_config_to_json_file init_device_compute_kernel_config "
        "concat_mesh_to_tensor_composer replicate_tensor_to_mesh_mapper shard_tensor_to_mesh_mapper changed load_spec"
    ),
    "tries a call in many ways on copies of a device; tests/ttsim/study compares them with the call": (
        "design sweep tune tune_network"
    ),
    "writes what a report knows; changes no tensor and no memory": (
        "dump_device_memory_state save_report ReadDeviceProfiler graph.end_graph_capture_to_file graph.pretty_format "
        "graph.pretty_print"
    ),
    "reads the list of a graph capture; needs no device": (
        "graph.count_intermediate_and_output_tensors graph.extract_calltrace graph.extract_levelized_graph "
        "graph.extract_output_info graph.extract_output_tensors graph.extract_peak_L1_memory_usage "
        "graph.extract_resource_usage_per_core graph.is_graph_capture_active"
    ),
    "waits for an event that has passed, as wait_for_event, which is drawn": "event_synchronize",
    "needs torch, and gives the numbers of to_numpy, which every check reads": "to_torch",
    "always refuses": "experimental.conv3d",
    "carries out what the four functions of oneDNN prepare, which are drawn": "onednn.run",
}
NOT_DRAWN: Final[Mapping[str, str]] = MappingProxyType(
    {name: reason for reason, names in _REASONS.items() for name in names.split()}
)
