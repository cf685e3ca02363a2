"""Every public name and the module that defines it: for type checkers, and for ``__init__.py``, which reads it."""

# ruff: noqa: I001 - several names a line
# fmt: off
from device.cores import (
    CoreCoord as CoreCoord, CoreGrid as CoreGrid, CoreRange as CoreRange, CoreRangeSet as CoreRangeSet,
)
from device.memory.memory_config import (
    DRAM_MEMORY_CONFIG as DRAM_MEMORY_CONFIG, L1_BLOCK_SHARDED_MEMORY_CONFIG as L1_BLOCK_SHARDED_MEMORY_CONFIG,
    L1_HEIGHT_SHARDED_MEMORY_CONFIG as L1_HEIGHT_SHARDED_MEMORY_CONFIG, L1_MEMORY_CONFIG as L1_MEMORY_CONFIG,
    L1_WIDTH_SHARDED_MEMORY_CONFIG as L1_WIDTH_SHARDED_MEMORY_CONFIG, BufferType as BufferType, Layout as Layout,
    MemoryConfig as MemoryConfig, ShardOrientation as ShardOrientation, ShardSpec as ShardSpec,
    TensorMemoryLayout as TensorMemoryLayout,
)
from device.spec.device_spec import DeviceSpec as DeviceSpec
from ops.sensitivity.changes import changed as changed, load_spec as load_spec
from ttsim import errors as errors, graph as graph, model_preprocessing as model_preprocessing, onednn as onednn
from ttsim.api.accumulation import cumprod as cumprod, cumsum as cumsum
from ttsim.api.batch_norm import batch_norm as batch_norm
from ttsim.api.bcast import BcastOpDim as BcastOpDim, BcastOpMath as BcastOpMath, bcast as bcast
from ttsim.api.compositions import (
    addcdiv as addcdiv, addcmul as addcmul, bitcast as bitcast, clamp as clamp, clip as clip, geglu as geglu,
    glu as glu, lerp as lerp, logical_not_ as logical_not_, mac as mac, prelu as prelu, reglu as reglu,
    swiglu as swiglu, unary_chain as unary_chain, where as where,
)
from ttsim.api.constraints import (
    OpConstraints as OpConstraints, query_op_constraints as query_op_constraints,
)
from ttsim.api.conv import Conv1dConfig as Conv1dConfig
from ttsim.api.convolutions import conv1d as conv1d, conv2d as conv2d, conv_transpose2d as conv_transpose2d
from ttsim.api.conversions import (
    as_tensor as as_tensor, deallocate as deallocate, distribute as distribute, dump_tensor as dump_tensor,
    from_device as from_device, from_numpy as from_numpy, from_torch as from_torch,
    get_memory_config as get_memory_config, is_tensor_storage_on_device as is_tensor_storage_on_device,
    load_tensor as load_tensor, to_device as to_device, to_dtype as to_dtype, to_layout as to_layout,
    to_memory_config as to_memory_config, to_torch as to_torch, typecast as typecast,
)
from ttsim.api.copies import assign as assign, clone as clone, copy as copy
from ttsim.api.conv3d import Conv3dConfig as Conv3dConfig
from ttsim.api.creation import (
    DEVICE_STORAGE_TYPE as DEVICE_STORAGE_TYPE, arange as arange, element_size as element_size, empty as empty,
    empty_like as empty_like, full as full, full_like as full_like, get_conv_output_dim as get_conv_output_dim,
    has_storage_type_of as has_storage_type_of, has_tile_padding as has_tile_padding, is_sharded as is_sharded,
    ones as ones, ones_like as ones_like, rand as rand, tile_size as tile_size, zeros as zeros,
    zeros_like as zeros_like,
)
from ttsim.api.counters import plus_one as plus_one
from ttsim.api.eltwise import (
    add as add, add_ as add_, mul as mul, mul_ as mul_, multiply as multiply, multiply_ as multiply_, sub as sub,
    sub_ as sub_, subtract as subtract, subtract_ as subtract_,
)
from ttsim.api.grid_sample import (
    grid_sample as grid_sample, prepare_grid_sample_grid as prepare_grid_sample_grid,
)
from ttsim.api.embedding import (
    EmbeddingsType as EmbeddingsType, embedding as embedding, gather as gather, nonzero as nonzero,
)
from ttsim.api.fold import fold as fold
from ttsim.api.kv_cache import fill_cache as fill_cache, update_cache as update_cache
from ttsim.api.matmul import addmm as addmm, linear as linear, matmul as matmul
from ttsim.api.group_norm import (
    create_group_norm_input_mask as create_group_norm_input_mask,
    create_group_norm_input_negative_mask as create_group_norm_input_negative_mask,
    create_group_norm_weight_bias_rm as create_group_norm_weight_bias_rm,
    determine_expected_group_norm_dram_grid_size as determine_expected_group_norm_dram_grid_size,
    determine_expected_group_norm_sharded_config_and_grid_size as
    determine_expected_group_norm_sharded_config_and_grid_size,
    dram_group_norm_params_from_torch as dram_group_norm_params_from_torch,
    get_group_norm_cores_across_channel as get_group_norm_cores_across_channel, group_norm as group_norm,
)
from ttsim.api.modules import (
    cluster as cluster, core as core, database as database, device as device, experimental as experimental,
    kv_cache as kv_cache, tracer as tracer, transformer as transformer,
)
from ttsim.api.moe import moe as moe
from ttsim.api.normalization import (
    create_layer_norm_reciprocals as create_layer_norm_reciprocals, layer_norm as layer_norm, rms_norm as rms_norm,
)
from ttsim.api.outer import outer as outer
from ttsim.api.pad import fill_implicit_tile_padding as fill_implicit_tile_padding, pad as pad
from ttsim.api.pool import (
    adaptive_avg_pool2d as adaptive_avg_pool2d, adaptive_max_pool2d as adaptive_max_pool2d, avg_pool2d as avg_pool2d,
    global_avg_pool2d as global_avg_pool2d, max_pool2d as max_pool2d,
)
from ttsim.api.pairs import (
    atan2 as atan2, bias_gelu_ as bias_gelu_, bitwise_and as bitwise_and, bitwise_left_shift as bitwise_left_shift,
    bitwise_or as bitwise_or, bitwise_right_shift as bitwise_right_shift, bitwise_xor as bitwise_xor, div_ as div_,
    divide_ as divide_, eq as eq, eq_ as eq_, fmod as fmod, gcd as gcd, ge as ge, ge_ as ge_, gt as gt, gt_ as gt_,
    hypot as hypot, lcm as lcm, ldexp as ldexp, ldexp_ as ldexp_, le as le, le_ as le_, logaddexp as logaddexp,
    logaddexp2 as logaddexp2, logaddexp2_ as logaddexp2_, logaddexp_ as logaddexp_, logical_and as logical_and,
    logical_and_ as logical_and_, logical_left_shift as logical_left_shift, logical_or as logical_or,
    logical_or_ as logical_or_, logical_right_shift as logical_right_shift, logical_xor as logical_xor,
    logical_xor_ as logical_xor_, lt as lt, lt_ as lt_, maximum as maximum, minimum as minimum, ne as ne,
    ne_ as ne_, nextafter as nextafter, remainder as remainder, rsub as rsub, rsub_ as rsub_,
    squared_difference as squared_difference, squared_difference_ as squared_difference_, xlogy as xlogy,
)
from ttsim.api.partial import (
    interleaved_to_sharded_partial as interleaved_to_sharded_partial,
    sharded_to_interleaved_partial as sharded_to_interleaved_partial,
)
from ttsim.api.parts import chunk as chunk, roll as roll, split as split
from ttsim.api.prepare import (
    prepare_conv_bias as prepare_conv_bias, prepare_conv_transpose2d_bias as prepare_conv_transpose2d_bias,
    prepare_conv_transpose2d_weights as prepare_conv_transpose2d_weights, prepare_conv_weights as prepare_conv_weights,
)
from ttsim.api.places import argmax as argmax, sort as sort, topk as topk
from ttsim.api.product import prod as prod
from ttsim.api.quotients import (
    addalpha as addalpha, bias_gelu as bias_gelu, div as div, div_no_nan as div_no_nan, divide as divide,
    floor_div as floor_div, isclose as isclose, multigammaln as multigammaln, polyval as polyval, pow as pow,
    rdiv as rdiv, subalpha as subalpha,
)
from ttsim.api.reduction import max as max, mean as mean, min as min, std as std, sum as sum, var as var
from ttsim.api.repeat import expand as expand, repeat as repeat, repeat_interleave as repeat_interleave
from ttsim.api.sampling import sampling as sampling
from ttsim.api.shape import (
    TileReshapeMapMode as TileReshapeMapMode, concat as concat, permute as permute, reshape as reshape,
    reshape_on_device as reshape_on_device, slice as slice, squeeze as squeeze, stack as stack, transpose as transpose,
    unsqueeze as unsqueeze, unsqueeze_to_4D as unsqueeze_to_4D, view as view,
)
from ttsim.api.softmax import (
    scale_causal_mask_hw_dims_softmax_in_place as scale_causal_mask_hw_dims_softmax_in_place,
    scale_mask_softmax as scale_mask_softmax, scale_mask_softmax_in_place as scale_mask_softmax_in_place,
    softmax as softmax, softmax_in_place as softmax_in_place,
)
from ttsim.api.statistics import (
    LossReductionMode as LossReductionMode, l1_loss as l1_loss, mse_loss as mse_loss, normalize_hw as normalize_hw,
    std_hw as std_hw, var_hw as var_hw,
)
from ttsim.api.to_config import (
    interleaved_to_sharded as interleaved_to_sharded, move as move, reallocate as reallocate, reshard as reshard,
    sharded_to_interleaved as sharded_to_interleaved, tilize as tilize,
    tilize_with_val_padding as tilize_with_val_padding, tilize_with_zero_padding as tilize_with_zero_padding,
    untilize as untilize, untilize_with_unpadding as untilize_with_unpadding,
)
from ttsim.api.trace import (
    QueueId as QueueId, begin_trace_capture as begin_trace_capture, command_queue as command_queue,
    end_trace_capture as end_trace_capture, event_synchronize as event_synchronize, execute_trace as execute_trace,
    get_current_command_queue_id_for_thread as get_current_command_queue_id_for_thread,
    is_trace_capture_active as is_trace_capture_active, record_event as record_event, release_trace as release_trace,
    wait_for_event as wait_for_event,
)
from ttsim.api.triangles import tril as tril, triu as triu
from ttsim.api.unary import (
    GeluVariant as GeluVariant, SigmoidMode as SigmoidMode, abs as abs, acos as acos, acosh as acosh, asin as asin,
    asinh as asinh, atan as atan, atanh as atanh, bitwise_not as bitwise_not, cbrt as cbrt, ceil as ceil,
    celu as celu, cos as cos, cosh as cosh, deg2rad as deg2rad, digamma as digamma, elu as elu, eqz as eqz,
    erf as erf, erfc as erfc, erfinv as erfinv, exp as exp, exp2 as exp2, expm1 as expm1, fill as fill,
    floor as floor, frac as frac, gelu as gelu, gez as gez, gtz as gtz, hardmish as hardmish,
    hardshrink as hardshrink, hardsigmoid as hardsigmoid, hardswish as hardswish, hardtanh as hardtanh,
    heaviside as heaviside, i0 as i0, i1 as i1, identity as identity, isfinite as isfinite, isinf as isinf,
    isnan as isnan, isneginf as isneginf, isposinf as isposinf, leaky_relu as leaky_relu, lez as lez,
    lgamma as lgamma, log as log, log10 as log10, log1p as log1p, log2 as log2, log_sigmoid as log_sigmoid,
    logical_not as logical_not, logit as logit, ltz as ltz, mish as mish, neg as neg, nez as nez,
    polygamma as polygamma, rad2deg as rad2deg, reciprocal as reciprocal, relu as relu, relu6 as relu6,
    relu_max as relu_max, relu_min as relu_min, round as round, rpow as rpow, rsqrt as rsqrt, selu as selu,
    sigmoid as sigmoid, sigmoid_accurate as sigmoid_accurate, sign as sign, signbit as signbit, silu as silu,
    sin as sin, sinh as sinh, softplus as softplus, softshrink as softshrink, softsign as softsign, sqrt as sqrt,
    square as square, swish as swish, tan as tan, tanh as tanh, tanhshrink as tanhshrink, threshold as threshold,
    trunc as trunc, xielu as xielu,
)
from ttsim.api.rotate import rotate as rotate
from ttsim.api.upsample import upsample as upsample
from ttsim.errors import (
    ArgumentError as ArgumentError, ArgumentIndexError as ArgumentIndexError, ArgumentTypeError as ArgumentTypeError,
    CircularBufferError as CircularBufferError, DeviceClosedError as DeviceClosedError, DeviceError as DeviceError,
    MemoryAccessError as MemoryAccessError, NotSimulatedError as NotSimulatedError,
    OutOfMemoryError as OutOfMemoryError, PoisonError as PoisonError,
    SpecError as SpecError, TTSimError as TTSimError,
)
from ttsim.recording.memory_reports import (
    MemoryView as MemoryView, dump_device_memory_state as dump_device_memory_state, get_memory_view as get_memory_view,
)
from ttsim.recording.profiling import Profile as Profile, estimate_cycles as estimate_cycles, profile as profile
from ttsim.recording.saving import save_report as save_report
from ttsim.report.cycle_report import CycleReport as CycleReport
from ttsim.report.network import NetworkReport as NetworkReport
from ttsim.runtime.device import (
    Arch as Arch, CloseDevice as CloseDevice, CreateDevice as CreateDevice, Device as Device,
    MeshCoordinate as MeshCoordinate, MeshCoordinateRange as MeshCoordinateRange, MeshDevice as MeshDevice,
    MeshShape as MeshShape, close_device as close_device, manage_device as manage_device, open_device as open_device,
)
from ttsim.runtime.golden import (
    get_golden_function as get_golden_function, pearson_correlation_coefficient as pearson_correlation_coefficient,
)
from ttsim.runtime.mesh import (
    ConcatMesh2dToTensor as ConcatMesh2dToTensor, ConcatMeshToTensor as ConcatMeshToTensor,
    CppMeshToTensor as CppMeshToTensor, CppTensorToMesh as CppTensorToMesh, MeshComposerConfig as MeshComposerConfig,
    MeshMapperConfig as MeshMapperConfig, MeshToTensor as MeshToTensor, PlacementReplicate as PlacementReplicate,
    PlacementShard as PlacementShard, ReplicateTensorToMesh as ReplicateTensorToMesh,
    ShardTensor2dMesh as ShardTensor2dMesh, ShardTensorToMesh as ShardTensorToMesh, TensorToMesh as TensorToMesh,
    concat_mesh_to_tensor_composer as concat_mesh_to_tensor_composer, create_mesh_composer as create_mesh_composer,
    create_mesh_mapper as create_mesh_mapper, replicate_tensor_to_mesh_mapper as replicate_tensor_to_mesh_mapper,
    shard_tensor_to_mesh_mapper as shard_tensor_to_mesh_mapper,
)
from ttsim.runtime.queried import ExecutionStatus as ExecutionStatus
from ttsim.runtime.settings import (
    CONFIG as CONFIG, CONFIG_OVERRIDES as CONFIG_OVERRIDES, CONFIG_PATH as CONFIG_PATH, Config as Config,
    load_config_from_dictionary as load_config_from_dictionary,
    load_config_from_json_file as load_config_from_json_file, manage_config as manage_config,
    save_config_to_json_file as save_config_to_json_file,
)
from ttsim.runtime.storage import StorageType as StorageType
from ttsim.runtime.system import (
    ClusterType as ClusterType, DispatchCoreAxis as DispatchCoreAxis, DispatchCoreConfig as DispatchCoreConfig,
    DispatchCoreType as DispatchCoreType, FabricConfig as FabricConfig, FabricManagerMode as FabricManagerMode,
    FabricReliabilityMode as FabricReliabilityMode, FabricTensixConfig as FabricTensixConfig,
    FabricUDMMode as FabricUDMMode, GetDefaultDevice as GetDefaultDevice,
    GetNumAvailableDevices as GetNumAvailableDevices, GetNumPCIeDevices as GetNumPCIeDevices,
    GetPCIeDeviceID as GetPCIeDeviceID, ReadDeviceProfiler as ReadDeviceProfiler, SetDefaultDevice as SetDefaultDevice,
    SystemMeshDescriptor as SystemMeshDescriptor, Topology as Topology, close_mesh_device as close_mesh_device,
    device_names as device_names,
    get_arch_name as get_arch_name, get_device_ids as get_device_ids, get_num_devices as get_num_devices,
    get_pcie_device_ids as get_pcie_device_ids, is_blackhole as is_blackhole, is_wormhole_b0 as is_wormhole_b0,
    open_mesh_device as open_mesh_device, set_fabric_config as set_fabric_config,
    synchronize_device as synchronize_device, using_distributed_env as using_distributed_env,
    visualize_mesh_device as visualize_mesh_device,
)
from ttsim.runtime.tensor import Tensor as Tensor
from ttsim.runtime.tensor_copies import (
    allocate_tensor_on_device as allocate_tensor_on_device, allocate_tensor_on_host as allocate_tensor_on_host,
    aggregate_tensor as aggregate_tensor, combine_device_tensors as combine_device_tensors,
    copy_device_to_host_tensor as copy_device_to_host_tensor, copy_host_to_device_tensor as copy_host_to_device_tensor,
    distribute_tensor as distribute_tensor, from_host_shards as from_host_shards,
    get_device_tensors as get_device_tensors,
)
from ttsim.runtime.traces import MeshEvent as MeshEvent, MeshTraceId as MeshTraceId
from ttsim.runtime.types.attention import (
    SDPAProgramConfig as SDPAProgramConfig,
    SoftmaxDefaultProgramConfig as SoftmaxDefaultProgramConfig,
    SoftmaxShardedMultiCoreProgramConfig as SoftmaxShardedMultiCoreProgramConfig,
)
from ttsim.runtime.types.configs import (
    Conv2dConfig as Conv2dConfig, Conv2dDRAMSliceHeight as Conv2dDRAMSliceHeight,
    Conv2dDRAMSliceWidth as Conv2dDRAMSliceWidth, Conv2dL1Full as Conv2dL1Full,
    Conv2dL1FullSliceConfig as Conv2dL1FullSliceConfig, Conv2dSliceConfig as Conv2dSliceConfig,
    DeviceComputeKernelConfig as DeviceComputeKernelConfig, MathFidelity as MathFidelity,
    Op2DDRAMSliceHeight as Op2DDRAMSliceHeight, Op2DDRAMSliceWidth as Op2DDRAMSliceWidth, Op2DL1Full as Op2DL1Full,
    Op2DL1FullSliceConfig as Op2DL1FullSliceConfig, Op2DSliceConfig as Op2DSliceConfig, PaddingMode as PaddingMode,
    ThrottleLevel as ThrottleLevel, UnaryOpType as UnaryOpType, UnaryWithParam as UnaryWithParam,
    WormholeComputeKernelConfig as WormholeComputeKernelConfig,
    init_device_compute_kernel_config as init_device_compute_kernel_config,
)
from ttsim.runtime.types.matmul_configs import (
    MatmulMultiCoreReuseMultiCast1DProgramConfig as MatmulMultiCoreReuseMultiCast1DProgramConfig,
    MatmulMultiCoreReuseMultiCastBatchedDRAMShardedProgramConfig
    as MatmulMultiCoreReuseMultiCastBatchedDRAMShardedProgramConfig,
    MatmulMultiCoreReuseMultiCastDRAMShardedProgramConfig as MatmulMultiCoreReuseMultiCastDRAMShardedProgramConfig,
    MatmulMultiCoreReuseMultiCastProgramConfig as MatmulMultiCoreReuseMultiCastProgramConfig,
    MatmulMultiCoreReuseProgramConfig as MatmulMultiCoreReuseProgramConfig,
)
from ttsim.runtime.types.norm_configs import (
    LayerNormDefaultProgramConfig as LayerNormDefaultProgramConfig,
    LayerNormShardedMultiCoreProgramConfig as LayerNormShardedMultiCoreProgramConfig,
    create_layernorm_program_config as create_layernorm_program_config,
)
from ttsim.runtime.types.sharding import (
    ShardStrategy as ShardStrategy, corerange_to_cores as corerange_to_cores,
    create_sharded_memory_config as create_sharded_memory_config,
    create_sharded_memory_config_ as create_sharded_memory_config_,
    num_cores_to_corerangeset as num_cores_to_corerangeset,
    num_cores_to_corerangeset_in_subcoregrids as num_cores_to_corerangeset_in_subcoregrids,
)
from ttsim.runtime.types.tensor_spec import TensorSpec as TensorSpec
from ttsim.runtime.types.tensors import (
    ROW_MAJOR_LAYOUT as ROW_MAJOR_LAYOUT, TILE_LAYOUT as TILE_LAYOUT, TILE_SIZE as TILE_SIZE, DataType as DataType,
    Shape as Shape, TensorDescription as TensorDescription, Tile as Tile, bfloat4_b as bfloat4_b,
    bfloat8_b as bfloat8_b, bfloat16 as bfloat16, float32 as float32, int8 as int8, int32 as int32, uint8 as uint8,
    uint16 as uint16, uint32 as uint32,
)
from ttsim.study.design import design as design
from ttsim.study.design_result import DesignResult as DesignResult
from ttsim.study.sweep import SweepResult as SweepResult, sweep as sweep
from ttsim.study.tune.network import tune_network as tune_network
from ttsim.study.tune.tune import tune as tune
from ttsim.study.tune.tuned import (
    Choice as Choice, Tuned as Tuned, TunedLayer as TunedLayer, TunedNetwork as TunedNetwork,
)
