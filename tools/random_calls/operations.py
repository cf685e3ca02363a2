"""All drawn operations, how often each is drawn, and the exported names that no step calls, each with its reason."""

from typing import Final

import numpy as np

from tools.random_calls import (
    attention,
    combinations,
    convolutions,
    decoders,
    device_calls,
    drafts,
    elementwise,
    normalizations,
    parts,
    preparations,
    products,
    reductions,
    tensors,
    windows,
)

# Each adds its operations.
FAMILIES: Final = (
    tensors, elementwise, combinations, products, attention, decoders, convolutions, windows, reductions,
    normalizations, parts, preparations, device_calls,
)  # fmt: skip
# By name: modules add theirs in the order of imports, which differs from tool to tool, and seeds must not.
OPERATIONS: Final = dict(sorted(drafts.OPERATIONS.items()))
_OFTEN: Final = {
    14: "from_numpy", 8: "conv_transpose2d", 5: "conv2d", 2.5: "concat max_pool2d avg_pool2d",
    2: "conv1d reshape slice pad permute to_layout to_memory_config", 1.5: "upsample fold",
    0.3: "as_tensor from_torch zeros ones empty full zeros_like ones_like empty_like full_like arange rand onednn "
    "command_queue dump_tensor estimate_cycles profile query_op_constraints",
}  # fmt: skip
_RARELY: Final = {
    elementwise.unary: 0.5,
    elementwise.binary: 0.5,
    elementwise.defined: 0.1,
    combinations.combination: 0.1,
}
# How often each operation is drawn, against the others.
WEIGHTS: Final = {name: _RARELY.get(operation.draw, 1.0) for name, operation in OPERATIONS.items()} | {
    name: weight for weight, names in _OFTEN.items() for name in names.split()
}
_ODDS: Final = np.cumsum(list(WEIGHTS.values())) / sum(WEIGHTS.values())


def drawn_name(choices: drafts.Choices) -> str:
    """The name of an operation."""
    return list(OPERATIONS)[int(np.searchsorted(_ODDS, choices.generator.random(), side="right"))]


# Why no step calls an exported function.
_REASONS: Final = {
    "opens, closes or names devices; a sequence has one device from its beginning to its end": (
        "CloseDevice CreateDevice close_device close_mesh_device open_mesh_device open_device manage_device "
        "GetDefaultDevice SetDefaultDevice GetNumAvailableDevices GetNumPCIeDevices GetPCIeDeviceID device_names "
        "get_arch_name get_device_ids get_num_devices get_pcie_device_ids ConcatMesh2dToTensor ConcatMeshToTensor "
        "ReplicateTensorToMesh ShardTensor2dMesh ShardTensorToMesh aggregate_tensor combine_device_tensors "
        "create_mesh_composer create_mesh_mapper distribute distribute_tensor visualize_mesh_device"
    ),
    "settings of the session, of meshes and of device files, which no call of a sequence reads": (
        "create_layernorm_program_config determine_expected_group_norm_dram_grid_size "
        "determine_expected_group_norm_sharded_config_and_grid_size get_group_norm_cores_across_channel "
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
    "gives or compares numbers of torch, without a device; tests/ttsim/runtime/test_golden.py holds them": (
        "get_golden_function pearson_correlation_coefficient"
    ),
    "prepares weights and masks on the host; tests/ttsim/api/test_group_norm.py holds their numbers": (
        "create_group_norm_input_negative_mask create_group_norm_weight_bias_rm dram_group_norm_params_from_torch"
    ),
    "makes a table on the host; tests/ttsim/api/test_normalization.py holds its numbers": (
        "create_layer_norm_reciprocals"
    ),
    "reckons with numbers or cores; has no tensor": (
        "corerange_to_cores create_sharded_memory_config_ num_cores_to_corerangeset_in_subcoregrids"
    ),
    "divides by a spread that may be 0; tests/ttsim/api/test_statistics.py holds its numbers": "normalize_hw",
    "draws scores at random, so that no numbers are known; tests/ops/planners/test_sampling.py": "sampling",
    "gives bits of numbers of another type; tests/ttsim/api/test_operations.py holds them": "bitcast",
    "carries out what the four functions of oneDNN prepare, which are drawn": "onednn.run",
}
NOT_DRAWN: Final = {name: reason for reason, names in _REASONS.items() for name in names.split()}
