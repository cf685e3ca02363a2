"""All drawn operations, and the exported names that no step calls, each with its reason."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from tools.random_calls import convolutions, device_calls, drafts, elementwise, tensors, windows

FAMILIES: Final = (tensors, elementwise, convolutions, windows, device_calls)  # each adds its operations
OPERATIONS: Final[Mapping[str, drafts.Operation]] = MappingProxyType(drafts.OPERATIONS)
WEIGHTS: Final[Mapping[str, float]] = MappingProxyType(drafts.WEIGHTS)

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
