"""The table of drawn operations, and the exported names that no step calls, each with its reason."""

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Final

from tools.fuzz.sequences import creation, creation as sessions, moving, windows
from tools.fuzz.sequences.convolutions import CONVOLUTIONS, again
from tools.fuzz.sequences.elementwise import BINARY, PRODUCTS, UNARY
from tools.fuzz.sequences.state import Draft, Step

Operation = Callable[[Draft], Step | None]

OPERATIONS: Final[Mapping[str, Operation]] = MappingProxyType(
    {
        "from_numpy": creation.from_numpy,
        "as_tensor": partial(creation.from_numpy, function="as_tensor"),
        "from_torch": partial(creation.from_numpy, function="from_torch"),
        **{name: partial(creation.filled, function=name) for name in creation.FILLERS},
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
        "move": partial(moving.elsewhere, function="move"),
        "reallocate": partial(moving.elsewhere, function="reallocate"),
        "deallocate": moving.deallocate,
        **{name: partial(moving.tilized, function=name) for name in moving.TILIZING},
        "untilize": moving.untilize,
        "untilize_with_unpadding": moving.untilize_with_unpadding,
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
        "typecast": moving.typecast,
        "to_dtype": moving.to_dtype,
        "from_device": moving.from_device,
        "to_device": moving.to_device,
        "dump_tensor": moving.dump_tensor,
        "copy.copy": moving.copies,
        **UNARY,
        **BINARY,
        **PRODUCTS,
        **CONVOLUTIONS,
        "convolution again": again,
        "max_pool2d": windows.max_pool2d,
        "upsample": windows.upsample,
        "fold": windows.fold,
        "experimental.convert_to_hwc": windows.convert_to_hwc,
        "experimental.convert_to_chw": windows.convert_to_chw,
        "onednn": sessions.onednn,
        "program cache": sessions.program_cache,
        "begin_trace_capture": sessions.trace,
        "graph capture": sessions.capture,
        "estimate_cycles": sessions.estimate_cycles,
        "profile": sessions.profile,
        "query_op_constraints": sessions.query_op_constraints,
        "question": sessions.question,
        "filled L1": sessions.filled_l1,
        "command_queue": sessions.command_queue,
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
        "to_memory_config": 2.0,
        "to_layout": 2.0,
        "conv1d": 2.0,
        "slice": 2.0,
        "pad": 2.0,
        "reshape": 2.0,
        "permute": 2.0,
        "fold": 1.5,
        "upsample": 1.5,
        **dict.fromkeys(UNARY, 0.4),
        **dict.fromkeys(BINARY, 0.6),
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
        "onednn": (
            "onednn.conv_transpose",
            "onednn.conv_transpose_backward_data",
            "onednn.conv_transpose_backward_weights",
            "onednn.conv_transpose_backprop_filters",
        ),
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

_DEVICES: Final = "opens, closes or names devices; a sequence has one device from its beginning to its end"
_SETTINGS: Final = "settings of the session, of meshes and of device files, which no call of a sequence reads"
_SEARCHES: Final = "tries a call in many ways on copies of a device; tests/ttsim/study compares them with the call"
_FILES: Final = "writes what a report knows; changes no tensor and no memory"
_TRACES: Final = "reads the list of a graph capture; needs no device"

NOT_DRAWN: Final[Mapping[str, str]] = MappingProxyType(
    {
        **dict.fromkeys(
            ("CloseDevice", "CreateDevice", "close_device", "close_mesh_device", "open_mesh_device"), _DEVICES
        ),
        **dict.fromkeys(("open_device", "manage_device", "GetDefaultDevice", "SetDefaultDevice"), _DEVICES),
        **dict.fromkeys(("GetNumAvailableDevices", "GetNumPCIeDevices", "GetPCIeDeviceID", "device_names"), _DEVICES),
        **dict.fromkeys(("get_arch_name", "get_device_ids", "get_num_devices", "get_pcie_device_ids"), _DEVICES),
        **dict.fromkeys(("is_blackhole", "is_wormhole_b0", "using_distributed_env", "set_fabric_config"), _SETTINGS),
        **dict.fromkeys(("load_config_from_dictionary", "load_config_from_json_file", "manage_config"), _SETTINGS),
        **dict.fromkeys(("save_config_to_json_file", "init_device_compute_kernel_config"), _SETTINGS),
        **dict.fromkeys(("concat_mesh_to_tensor_composer", "replicate_tensor_to_mesh_mapper"), _SETTINGS),
        **dict.fromkeys(("shard_tensor_to_mesh_mapper", "changed", "load_spec"), _SETTINGS),
        **dict.fromkeys(("design", "sweep", "tune", "tune_network"), _SEARCHES),
        **dict.fromkeys(("dump_device_memory_state", "save_report", "ReadDeviceProfiler"), _FILES),
        **dict.fromkeys(("graph.end_graph_capture_to_file", "graph.pretty_format", "graph.pretty_print"), _FILES),
        **dict.fromkeys(("graph.count_intermediate_and_output_tensors", "graph.extract_calltrace"), _TRACES),
        **dict.fromkeys(("graph.extract_levelized_graph", "graph.extract_output_info"), _TRACES),
        **dict.fromkeys(("graph.extract_output_tensors", "graph.extract_peak_L1_memory_usage"), _TRACES),
        **dict.fromkeys(("graph.extract_resource_usage_per_core", "graph.is_graph_capture_active"), _TRACES),
        "event_synchronize": "waits for an event that has passed, as wait_for_event, which is drawn",
        "to_torch": "needs torch, and gives the numbers of to_numpy, which every check reads",
        "experimental.conv3d": "always refuses",
        "onednn.run": "carries out what the four functions of oneDNN prepare, which are drawn",
    }
)
