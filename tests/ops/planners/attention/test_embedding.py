"""The embedding program, as ttnn 0.81.1 planned it on an 8x8 Wormhole."""

import pytest

from device.memory.layouts import TensorSpec
from device.memory.memory_config import DRAM_MEMORY_CONFIG, L1_MEMORY_CONFIG, Layout
from device.numbers.formats import BFLOAT16, UINT32
from device.plan import Operation
from device.spec.device_spec import load_spec
from ops.planners.attention.embedding import EmbeddingArguments, EmbeddingKind, plan_embedding

SPEC = load_spec("wormhole_n150")


def indices(*shape, layout=Layout.ROW_MAJOR, place=DRAM_MEMORY_CONFIG):
    return TensorSpec(shape, UINT32, layout, place)


def table(*shape, layout=Layout.ROW_MAJOR, place=DRAM_MEMORY_CONFIG):
    return TensorSpec(shape, BFLOAT16, layout, place)


@pytest.mark.parametrize(
    ("call", "programs"),
    [
        (EmbeddingArguments(indices=indices(2, 64), table=table(1000, 96)), {"Embeddings": [384, 256]}),
        (
            EmbeddingArguments(
                indices=indices(2, 60, place=L1_MEMORY_CONFIG), table=table(100, 33, place=L1_MEMORY_CONFIG)
            ),
            {"Embeddings": [160, 128]},
        ),
        (
            EmbeddingArguments(indices=indices(2, 64), table=table(1000, 96), layout=Layout.TILE),
            {"Embeddings": [12288, 12288, 128]},
        ),
        (
            EmbeddingArguments(
                indices=indices(2, 64), table=table(100, 64), layout=Layout.TILE, kind=EmbeddingKind.PADDED, pad_token=1
            ),
            {"Embeddings": [8192, 8192, 128, 128]},
        ),
        (
            EmbeddingArguments(indices=indices(1, 64), table=table(100, 16384), layout=Layout.TILE),
            {"Embeddings": [262144, 262144, 128]},
        ),
        (
            EmbeddingArguments(indices=indices(2, 60), table=table(100, 64, layout=Layout.TILE)),
            {"UntilizeWithUnpadding": [4096, 4096], "Embeddings": [256, 256], "TilizeWithValPadding": [4096, 4096]},
        ),
        (
            EmbeddingArguments(indices=indices(2, 64, layout=Layout.TILE), table=table(1000, 96), layout=Layout.TILE),
            {"Embeddings": [384, 4096], "Tilize": [6144, 6144]},
        ),
    ],
)
def test_programs_and_their_buffers(call, programs):
    steps = [step for step in plan_embedding(call, SPEC).steps if isinstance(step, Operation)]
    sizes = {step.name: [buffer.size_bytes for buffer in step.circular_buffers] for step in steps}
    assert sizes == {f"{name}DeviceOperation": bytes_ for name, bytes_ in programs.items()}
