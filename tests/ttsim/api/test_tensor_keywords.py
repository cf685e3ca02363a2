"""Keywords, names and errors of the real library that move tensors."""

import numpy as np
import pytest

import ttsim


def small(device: ttsim.Device | None = None) -> ttsim.Tensor:
    values = np.arange(64 * 64, dtype=np.float32).reshape(1, 1, 64, 64) % 64
    return ttsim.Tensor(values, ttsim.bfloat16, device, ttsim.TILE_LAYOUT)


def test_a_device_tensor_says_what_the_real_one_says() -> None:
    with ttsim.open_device() as device:
        x = small(device)
        assert (x.get_layout(), x.get_dtype()) == (ttsim.TILE_LAYOUT, ttsim.bfloat16)
        assert repr(x.tile) == repr(x.get_tile()) == "Tile with shape: [32, 32]"
        assert (x.buffer_page_size(), x.buffer_num_pages(), x.buffer_aligned_page_size()) == (2048, 4, 2048)
        assert ttsim.get_memory_config(x) == ttsim.DRAM_MEMORY_CONFIG
        assert ttsim.get_memory_config(x.cpu()) is None
        assert ttsim.get_device_tensors(x) == [x]
        with pytest.raises(RuntimeError, match="StorageType::HOST doesn't support buffer_address method"):
            x.cpu().buffer_address()
        with pytest.raises(RuntimeError, match="exactly one element, but got 4096 elements"):
            x.item()


def test_keywords_are_those_of_the_real_library() -> None:
    with ttsim.open_device() as device:
        x = small().to(device=device, mem_config=ttsim.L1_MEMORY_CONFIG, cq_id=0)
        assert x.memory_config() == ttsim.L1_MEMORY_CONFIG
        assert x.cpu(blocking=False, cq_id=1).to(target_layout=ttsim.ROW_MAJOR_LAYOUT).layout is ttsim.ROW_MAJOR_LAYOUT
        assert ttsim.from_device(ttsim.to_device(small(), device, queue_id=0), queue_id=0).shape == x.shape
        cast = ttsim.typecast(x, ttsim.float32, memory_config=ttsim.DRAM_MEMORY_CONFIG)
        assert (cast.dtype, cast.memory_config()) == (ttsim.float32, ttsim.DRAM_MEMORY_CONFIG)
        out = ttsim.allocate_tensor_on_device(x.shape, x.dtype, x.layout, device, ttsim.L1_MEMORY_CONFIG)
        assert ttsim.to_memory_config(x, ttsim.L1_MEMORY_CONFIG, output_tensor=out) is out
        assert (out.to_numpy() == x.to_numpy()).all()
        ttsim.synchronize_device(device, cq_id=0)
        output = ttsim.from_torch(x.to_numpy(), spec=x.spec, device=device, tile=ttsim.Tile((32, 32)), cq_id=0)
        assert output.spec == x.spec


@pytest.mark.parametrize("function", [ttsim.from_torch, ttsim.to_torch, ttsim.as_tensor, ttsim.to_layout])
def test_an_unknown_keyword_is_refused(function) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(TypeError, match="rank_of_torch"):
        function(small(), rank_of_torch=2)


def test_values_are_copied_into_what_is_there() -> None:
    with ttsim.open_device() as device:
        x = ttsim.allocate_tensor_on_device(small().spec, device)
        address = x.buffer_address()
        ttsim.copy_host_to_device_tensor(small(), x, cq_id=0)
        assert x.buffer_address() == address
        host = ttsim.zeros((1, 1, 64, 64), layout=ttsim.TILE_LAYOUT)
        ttsim.copy_device_to_host_tensor(x, host)
        assert (host.to_numpy() == small().to_numpy()).all()
        with pytest.raises(RuntimeError, match="copy_host_to_device_tensor: device_tensor must have shape"):
            ttsim.copy_host_to_device_tensor(ttsim.zeros((1, 1, 32, 32), layout=ttsim.TILE_LAYOUT), x)
        with pytest.raises(RuntimeError, match=r"host_tensor must have .*BFLOAT16 .*, not .*FLOAT32 and"):
            ttsim.copy_device_to_host_tensor(x, ttsim.zeros((1, 1, 64, 64), ttsim.float32, ttsim.TILE_LAYOUT))
        with pytest.raises(TypeError, match="give a spec and a device"):
            ttsim.allocate_tensor_on_device(x.spec)


def test_ranks_of_shapes_and_sizes_of_tiles() -> None:
    assert ttsim.Shape([1, 2]).to_rank(4) == [1, 1, 1, 2]
    assert ttsim.Shape([1, 1, 3, 4]).to_rank(2) == [3, 4]
    with pytest.raises(RuntimeError, match="Can't convert shape rank 2 to 1"):
        ttsim.Shape([2, 3]).to_rank(1)
    with pytest.raises(RuntimeError, match="are not simulated"):
        ttsim.Tile((16, 32))


def test_a_method_frees_what_nobody_shares() -> None:
    with ttsim.open_device() as device:
        x = small(device)
        view = ttsim.squeeze(x)
        x.deallocate()
        assert view.is_allocated()
        x.deallocate(force=True)
        assert not view.is_allocated()
