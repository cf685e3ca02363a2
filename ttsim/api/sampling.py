"""ttnn.sampling, an index of each user's scores, drawn at random."""

from device.cores import CoreRangeSet
from ops.planners.sampling import SamplingArguments, plan_sampling
from ttsim.api.device_calls import operation, run_on_several
from ttsim.runtime.tensor import Tensor


@operation
def sampling(
    input_values_tensor: Tensor,
    input_indices_tensor: Tensor,
    k: Tensor,
    p: Tensor,
    temp: Tensor,
    *,
    seed: int | None = None,
    sub_core_grids: CoreRangeSet | None = None,
    output_tensor: Tensor | None = None,
) -> Tensor:
    """The index of one of the largest scores of each user, drawn at random.

    The numbers of a device's generator are not simulated, so that the result has no values.

    Args:
        input_values_tensor: Scores [1, 1, users, scores] of bfloat16 on the device, in TILE layout, of 1 to 32 users
            with 32 times a power of two scores.
        input_indices_tensor: The indices of the scores, of the same shape, uint32 or int32 in rows.
        k: [users] of uint32 in rows: how many of the largest scores are drawn from.
        p: [users] of bfloat16 in rows: the share of the softmax that is drawn from.
        temp: [users] of bfloat16 in rows: the factor of the scores.
        seed: The seed of the generator; None for none.
        sub_core_grids: Cores that may be used, one for each user; None for the first of the device.
        output_tensor: A tensor [1, 1, 1, users] that receives the result; None creates a new tensor.

    Returns:
        The indices [1, 1, 1, users].

    Examples:
        >>> scores = ttnn.zeros((1, 1, 2, 64), layout=ttnn.TILE_LAYOUT, device=device)
        >>> indices = ttnn.zeros((1, 1, 2, 64), dtype=ttnn.uint32, device=device)
        >>> k, half = ttnn.full((2,), 4, dtype=ttnn.uint32, device=device), ttnn.full((2,), 0.5, device=device)
        >>> call = lambda *tensors: ttnn.sampling(*tensors)
        >>> query = ttnn.graph.query_op_constraints(call, device, scores, indices, k, half, half)
        >>> query.output_tensor_specs[0].shape
        (1, 1, 1, 2)
    """
    tensors = {
        "input": input_values_tensor, "indices": input_indices_tensor, "counts": k, "shares": p, "temperatures": temp,
        "target": output_tensor,
    }  # fmt: skip
    call = SamplingArguments(
        scores=input_values_tensor.spec,
        indices=input_indices_tensor.spec,
        counts=k.spec,
        shares=p.spec,
        temperatures=temp.spec,
        cores=sub_core_grids,
        target=None if output_tensor is None else output_tensor.spec,
    )
    return run_on_several("sampling", plan_sampling, call, tensors, lambda: None)
