"""ttnn.prod, the product of elements."""

from typing import Any, get_overloads, overload

from device.memory.memory_config import MemoryConfig
from ops.planners.product import ProductArguments, plan_product, plan_product_into
from ttsim.api.device_calls import converted, integers_of, required_device
from ttsim.api.without_elements import is_empty, reduced
from ttsim.runtime.calls import on_device
from ttsim.runtime.tensor import Tensor
from ttsim.runtime.types.call import required_integer, signature_of


@overload
def prod(
    input_tensor: Tensor, dim: object = None, keepdim: bool = False, *, memory_config: MemoryConfig | None = None
) -> Tensor: ...


@overload
def prod(
    input_tensor: Tensor, output_tensor: Tensor, *, dims: object, memory_config: MemoryConfig | None = None
) -> Tensor: ...


@on_device
def prod(*arguments: Any, **named: Any) -> Tensor:
    """The product of all elements along an axis, or of all elements; or along axes, written into a tensor.

    The numbers were never compared with recordings of the real kernels.

    Args:
        input_tensor: An interleaved tensor on the device.
        dim: The axis; negative numbers count from the last. None multiplies all elements.
        keepdim: Keep the axis, or all axes, with length 1.
        output_tensor: With ``dims``: a tensor of four axes that receives the product and is returned.
        dims: Some of the first two of four axes, counted from the first; without any, the call is that without
            ``output_tensor``.
        memory_config: Memory of the result, or of the products along all of ``dims`` but one; None for that of the
            tensor.

    Returns:
        The product, in TILE layout, or ``output_tensor``.

    Raises:
        ArgumentTypeError: An argument is unknown, missing or of the wrong type.
        DeviceError: The tensor is on the host, or the axis or data type is none that the real library takes.
        OutOfMemoryError: The result does not fit its memory.

    Examples:
        >>> tensor = ttnn.Tensor(np.array([[2.0, 3.0, 4.0]]), ttnn.bfloat16, device, ttnn.TILE_LAYOUT)
        >>> ttnn.prod(tensor, dim=-1).to_list()
        [24.0]
    """
    if "dims" not in named:
        given = ALONG_ONE.bind(arguments, named)
        dim = None if given["dim"] is None else required_integer("prod", "dim", given["dim"])
        call = ProductArguments(dim=dim, keeps=given["keepdim"], place=given["memory_config"])
        return _product(given["input_tensor"], call)
    given = ALONG_SOME.bind(arguments, named)
    tensor, target, place = given["input_tensor"], given["output_tensor"], given["memory_config"]
    dims = integers_of("prod: dims", given["dims"])
    if not dims:
        return _product(tensor, ProductArguments(dim=None, keeps=False, place=place, wide=True))
    return converted("prod", plan_product_into, tensor, dims, target=target, place=place)


def _product(tensor: Tensor, call: ProductArguments) -> Tensor:
    required_device("prod", tensor)
    if is_empty(tensor):
        return reduced(tensor, call.axes(tensor.spec), call.place, keeps=call.keeps, value=1.0, fills=True)
    return converted("prod", plan_product, tensor, call)


ALONG_ONE, ALONG_SOME = map(signature_of, get_overloads(prod))
