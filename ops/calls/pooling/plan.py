"""The plan of ttnn.max_pool2d: shard, halo, move, pool.

Rules: ttnn 0.81.1, compared with recorded plans.
"""

from dataclasses import replace

from device.errors import ArgumentError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import BufferType, Layout
from device.numbers.formats import BFLOAT16
from device.numbers.integers import div_up
from device.plan import Plan
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanBuilder, PlanTensor
from ops.calls.pooling.arguments import PoolArguments
from ops.calls.pooling.sharding import PoolShards, chosen_cores, input_memory, pool_shards
from ops.calls.relaying.places import placed
from ops.meanings import MEANINGS
from ops.programs.conv2d.layout import sharded_input
from ops.programs.conv2d.reader_indices import WORD_BYTES, reader_index_words
from ops.programs.halo.plan import HaloArguments, HaloWork, config_tensor_spec, plan_halo, walk_refusal
from ops.programs.movement.placement import move_up
from ops.programs.movement.reshape import flattened, reshaped
from ops.programs.pool2d.circular_buffers import PoolSizes, pool_buffers
from ops.programs.pool2d.work import MaxPool


def plan_max_pool2d(call: PoolArguments, spec: DeviceSpec) -> Plan:
    """Plan a call, validated; its images are the tensor "input"."""
    builder = PlanBuilder(spec, {"input": call.source})
    source = builder.tensor("input")
    interleaved = call.source.memory_config.shard_spec is None
    flat = reshaped(builder, source, flattened(call.source.shape), "input.flat") if interleaved else source
    if interleaved:
        sharded = placed(builder, flat, input_memory(call, chosen_cores(call, spec.grid)), "input.sharded")
        if builder.is_own(flat):
            builder.free(flat)
    else:
        sharded = flat
    shards = pool_shards(call, sharded_input(sharded.spec.memory_config))
    halo = _halo_arguments(call, sharded, shards, spec)
    sticks = _halo(builder, halo, sharded)
    own = builder.is_own(sharded)
    if call.deallocate_input or (own and call.source.memory_config.buffer_type is BufferType.DRAM):
        builder.free(sharded)
    if call.reallocate_halo:
        move_up(builder, sticks)
    if call.return_indices and _refusal(sticks.spec, shards) is None:
        builder.refuse(ArgumentError("max_pool2d: return_indices is not simulated; leave it out"))
        return builder.finish({"output": sticks.name}, known_works=MEANINGS)
    result = _pool(builder, call, halo, sticks, shards)
    if call.place is not None:
        pooled = result
        result = placed(builder, pooled, call.place, "output.placed")
        if result is not pooled:
            builder.free(pooled)
    builder.free(sticks)
    if own and builder.is_live(sharded):
        builder.free(sharded)
    return builder.finish({"output": result.name}, known_works=MEANINGS)


def _halo_arguments(call: PoolArguments, sharded: PlanTensor, shards: PoolShards, spec: DeviceSpec) -> HaloArguments:
    held = sharded.spec.shards
    return HaloArguments(
        frame=call.frame,
        scheme=shards.config.scheme,
        orientation=shards.config.orientation,
        cores=shards.config.cores,
        nhw_cores=shards.config.nhw_cores,
        channel_cores=shards.config.channel_cores,
        input_rows=held.shape[0],
        output_rows=shards.rows,
        shard_width=held.shape[1],
        data_format=sharded.spec.data_format,
        stick_alignment_bytes=spec.l1.alignment_bytes,
        tiled=sharded.spec.layout is Layout.TILE,
        input_matrix=sharded.spec.matrix,
        config_tensors_in_dram=call.config_tensor_in_dram,
    )


def _halo(builder: PlanBuilder, halo: HaloArguments, sharded: PlanTensor) -> PlanTensor:
    plan = plan_halo(halo, input_tensor=sharded.name, output_tensor="halo")
    _check_images(sharded.spec, plan.output, halo.nhw_cores)
    work = HaloWork(plan=plan, fp32_dest=False, filled_by_stick=True)
    return builder.run(
        "HaloDeviceOperation",
        work,
        [sharded],
        output=PlanTensor("halo", plan.output),
        resident=[PlanTensor(name, one) for name, one in plan.resident],
        circular_buffers=plan.circular_buffers,
        refused=_halo_refusal(sharded),
        key=("pool halo", work),
    )


def _check_images(images: TensorSpec, sticks: TensorSpec, cores: int) -> None:
    """Raises DeviceError for images in shards: the library shares the sticks out to the images, and each has H."""
    (batch, height), (*_, count, channels), place = images.shape[:2], sticks.shape, sticks.memory_config
    share = div_up(count, batch)
    shards = replace(sticks.shards, shape=(div_up(batch * share, cores), sticks.shards.shape[1]))
    TensorSpec((batch, height, share, channels), sticks.data_format, sticks.layout, replace(place, shard_spec=shards))


def _pool(
    builder: PlanBuilder, call: PoolArguments, halo: HaloArguments, sticks: PlanTensor, shards: PoolShards
) -> PlanTensor:
    work = MaxPool(
        frame=call.frame,
        channels=call.channels,
        channel_cores=shards.config.channel_cores,
        core_outputs=shards.rows,
        in_format=sticks.spec.data_format,
        data_format=call.data_format,
        tiled=call.tiled,
    )
    words = reader_index_words(
        call.frame, output_rows=shards.rows, cores=shards.config.nhw_cores, block_rows=(shards.rows,)
    )
    indices = PlanTensor("reader_indices", config_tensor_spec(halo, words))
    shape = (1, 1, call.frame.outputs, call.channels)
    layout = Layout.TILE if call.tiled else Layout.ROW_MAJOR
    made = PlanTensor("output", TensorSpec(shape, call.data_format, layout, shards.memory))
    held = sticks.spec.shards
    channels = div_up(call.channels, shards.config.channel_cores)
    wide = min(held.shape[1], call.channels, sticks.spec.shape[-1] // shards.config.channel_cores)
    stick_elements = held.shape[0] * wide
    sizes = PoolSizes(
        taps=work.taps,
        channels=channels,
        out_shard=(shards.rows, shards.columns),
        data_format=call.data_format,
        tiled=call.tiled,
        config_tensor_in_dram=call.config_tensor_in_dram,
    )
    buffers = pool_buffers(
        sizes,
        halo=sticks.name,
        halo_bytes=stick_elements * (sticks.spec.data_format.element_bytes or 0),
        indices=indices.name,
        indices_bytes=words * WORD_BYTES,
        output=made.name,
        cores=shards.config.cores,
    )
    return builder.run(
        "Pool2D",
        work,
        [sticks],
        output=made,
        resident=[indices],
        circular_buffers=buffers,
        refused=_refusal(sticks.spec, shards),
        key=("pool", work, sticks.spec.memory_config, made.spec.memory_config),
    )


def _halo_refusal(sharded: PlanTensor) -> str | None:
    """Why the library does not put the images into their frame, if it does not."""
    if not sharded.in_l1:
        return "Only L1 buffers can have an associated circular buffer!\ninput_tensor: move its shards to L1"
    walked = walk_refusal(sharded.spec.shards.grid)
    return f"{walked}\ninput_tensor: shard it over cores that fill rows from core (0, 0) on" if walked else None


def _refusal(sticks: TensorSpec, shards: PoolShards) -> str | None:
    """Why the library does not build the program, if it does not."""
    if sticks.data_format != BFLOAT16:
        return "Only BFLOAT16 supported for now\ninput_tensor: typecast it to bfloat16"
    width, parts = sticks.shape[-1], shards.config.channel_cores
    if width % parts:
        return (
            f"For width and block sharding, input channels ({width}) should be divisible by num_shards ({parts})\n"
            "input_tensor: shard it over as many cores as divide its channels"
        )
    return None
