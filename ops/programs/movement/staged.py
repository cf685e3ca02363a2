"""Steps under construction: what has been planned so far, and the tensor it ends in."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from device.memory.layouts import TensorSpec
from device.memory.memory_config import BufferType
from device.plan import Allocate, Free, Operation, Step
from device.spec.device_spec import DeviceSpec

CREATED = "tt::tt_metal::create_device_tensor"
UPLOADED = "Tensor::to_device"


@dataclass(frozen=True, slots=True, kw_only=True)
class Staged:
    """Steps, and the tensor they end in.

    A *view* (the same buffer under another shape) takes no step: it keeps its ``name`` and changes ``spec``. So
    ``spec`` is how later steps see the tensor, ``tensors`` how it was allocated.

    Attributes:
        name: Name of the tensor that holds the result.
        spec: Shape, format, layout and place of the result.
        steps: In order.
        tensors: Every tensor that the steps allocate, by name.
        owned: Tensors that the call made for its input and that are released when it returns.
    """

    name: str
    spec: TensorSpec
    steps: tuple[Step, ...] = ()
    tensors: Mapping[str, TensorSpec] = field(default_factory=dict)
    owned: tuple[str, ...] = ()

    @property
    def in_l1(self) -> bool:
        """Whether the result lies in L1."""
        return self.spec.memory_config.buffer_type is BufferType.L1

    def then(self, *steps: Step) -> "Staged":
        """More steps that leave the result where it is."""
        if not steps:
            return self
        more = (*self.steps, *steps)
        return Staged(name=self.name, spec=self.spec, steps=more, tensors=self.tensors, owned=self.owned)

    def followed_by(self, other: "Staged") -> "Staged":
        """What ``other``, which starts from this result, ends in."""
        return Staged(
            name=other.name,
            spec=other.spec,
            steps=(*self.steps, *other.steps),
            tensors={**self.tensors, **other.tensors},
            owned=(*self.owned, *other.owned),
        )


def allocated(name: str, spec: TensorSpec, device: DeviceSpec) -> Staged:
    """A tensor comes into being; an operation writes it later."""
    return Staged(name=name, spec=spec, steps=(Allocate(name, spec.buffer(device), CREATED),), tensors={name: spec})


def uploaded(name: str, spec: TensorSpec, device: DeviceSpec, source: str) -> Staged:
    """The host tensor ``source`` is written to the device; what ``spec`` pads it with is zero."""
    step = Allocate(name, spec.buffer(device), UPLOADED, source)
    return Staged(name=name, spec=spec, steps=(step,), tensors={name: spec})


def computed(
    operation: str,
    source: Staged,
    name: str,
    spec: TensorSpec,
    device: DeviceSpec,
    work: object,
    resident: tuple[tuple[str, TensorSpec], ...] = (),
) -> Staged:
    """One device operation that makes one tensor from one other.

    Args:
        operation: Its name without the ending that all of them share.
        source: What it reads; its steps are not repeated.
        name: Name of the new tensor.
        spec: The new tensor.
        device: The machine.
        work: What is computed.
        resident: Names and specs of tensors that the cached program keeps.
    """
    kept = tuple(Allocate(tensor, made.buffer(device), UPLOADED) for tensor, made in resident)
    step = Operation(
        name=f"{operation}DeviceOperation",
        inputs=(source.name,),
        outputs=(Allocate(name, spec.buffer(device)),),
        resident=kept,
        work=work,
        key=(operation, source.spec, spec, work),
    )
    return Staged(name=name, spec=spec, steps=(step,), tensors={name: spec, **dict(resident)})


def in_place(operation: str, source: Staged | None, target: Staged, work: object) -> Staged:
    """One device operation that writes into a tensor that is there already.

    Args:
        operation: Its name without the ending that all of them share.
        source: What it reads besides the target, if anything.
        target: What it writes.
        work: What is computed.
    """
    read = () if source is None else (source.name,)
    step = Operation(
        name=f"{operation}DeviceOperation",
        inputs=(*read, target.name),
        work=work,
        key=(operation, source and source.spec, target.spec, work),
    )
    return Staged(name=target.name, spec=target.spec, steps=(step,))


def released(staged: Staged, *names: str) -> Staged:
    """The named tensors are released, in that order."""
    return staged.then(*(Free(name) for name in names))


def owning(staged: Staged, *names: str) -> Staged:
    """The same steps, with these tensors and no others for the call to release when it is done with them."""
    return Staged(name=staged.name, spec=staged.spec, steps=staged.steps, tensors=staged.tensors, owned=names)
