"""ttnn.moe, the weight of the first expert of a mixture."""

from device.memory.memory_config import MemoryConfig
from ops.planners.moe import MoeArguments, plan_moe
from ttsim.api.device_calls import operation, run_on_several
from ttsim.runtime.tensor import Tensor


@operation
def moe(
    input_tensor: Tensor,
    expert_mask_tensor: Tensor,
    topk_mask_tensor: Tensor,
    k: int,
    *,
    memory_config: MemoryConfig | None = None,
    output_tensor: Tensor | None = None,
) -> Tensor:
    """The weight of expert 0: the softmax of the k largest scores of each row, where expert 0 is among them, else 0.

    The numbers were never compared with recordings of the real kernels.

    Args:
        input_tensor: Scores [N, C, H, experts] on the device in TILE layout; experts are a power of two from 64 on.
        expert_mask_tensor: A row in TILE layout that is added to the scores of the experts.
        topk_mask_tensor: A row in TILE layout that is added to the k largest scores.
        k: 32, the number of scores that are picked.
        memory_config: Memory of the result; None for interleaved DRAM.
        output_tensor: A tensor that receives the result and is returned; None creates a new tensor.

    Returns:
        The weights [N, C, H, 1].

    Examples:
        >>> scores = ttnn.zeros((1, 1, 32, 64), layout=ttnn.TILE_LAYOUT, device=device)
        >>> masks = [ttnn.zeros((1, 1, 1, width), layout=ttnn.TILE_LAYOUT, device=device) for width in (64, 32)]
        >>> ttnn.moe(scores, *masks, 32).to_numpy()[0, 0, 0, 0].item()
        0.03125
    """
    tensors = {
        "input": input_tensor, "experts": expert_mask_tensor, "picked": topk_mask_tensor, "target": output_tensor,
    }  # fmt: skip
    call = MoeArguments(
        scores=input_tensor.spec,
        experts=expert_mask_tensor.spec,
        picked=topk_mask_tensor.spec,
        count=k,
        place=memory_config,
        target=None if output_tensor is None else output_tensor.spec,
    )
    return run_on_several("moe", plan_moe, call, tensors, lambda: None)
