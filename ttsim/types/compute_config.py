"""How the compute threads calculate: fidelity, accumulator, packer."""

from device.cores import PlainEnum
from ops.planners.conv.arguments import ComputeConfig
from ttsim.types.signature import CheckedRecord


class MathFidelity(PlainEnum):
    """How many passes a multiplication takes; the numbers are ttnn's."""

    LoFi = 0
    HiFi2 = 2
    HiFi3 = 3
    HiFi4 = 4
    Invalid = 255

    @property
    def fidelity_phases(self) -> int:
        """Fidelity phases; an invalid fidelity runs as LoFi."""
        return self.value if self.value in (2, 3, 4) else 1


class ThrottleLevel(PlainEnum):
    """How far matrix products are slowed down; accepted, and without effect on a convolution."""

    NO_THROTTLE = 0
    LEVEL_1 = 1
    LEVEL_2 = 2
    LEVEL_3 = 3
    LEVEL_4 = 4
    LEVEL_5 = 5


class WormholeComputeKernelConfig(CheckedRecord):
    """Compute config of every architecture.

    Attributes:
        math_fidelity: Passes of a multiplication.
        math_approx_mode: Without effect on what a convolution computes.
        fp32_dest_acc_en: Whether sums are kept in float32 rather than bfloat16.
        packer_l1_acc: Whether partial sums are added in L1.
        dst_full_sync_en: Without effect on what a convolution computes.
        throttle_level: Without effect on what a convolution computes.
    """

    math_fidelity: MathFidelity = MathFidelity.Invalid
    math_approx_mode: bool = True
    fp32_dest_acc_en: bool = False
    packer_l1_acc: bool = False
    dst_full_sync_en: bool = False
    throttle_level: ThrottleLevel = ThrottleLevel.NO_THROTTLE

    def argument(self) -> ComputeConfig:
        """The config in the machine's own types."""
        return ComputeConfig(
            fidelity_phases=self.math_fidelity.fidelity_phases,
            fp32_dest=self.fp32_dest_acc_en,
            packer_l1_acc=self.packer_l1_acc,
            fidelity_left_out=self.math_fidelity is MathFidelity.Invalid,
            math_approx=self.math_approx_mode,
            dst_full_sync=self.dst_full_sync_en,
            throttle_level=self.throttle_level.value,
        )

    @classmethod
    def of(cls, config: ComputeConfig) -> "WormholeComputeKernelConfig":
        """The config that means this one of the machine."""
        fidelity = next(one for one in MathFidelity if one.fidelity_phases == config.fidelity_phases)
        return cls(
            math_fidelity=MathFidelity.Invalid if config.fidelity_left_out else fidelity,
            math_approx_mode=config.math_approx,
            fp32_dest_acc_en=config.fp32_dest,
            packer_l1_acc=config.packer_l1_acc,
            dst_full_sync_en=config.dst_full_sync,
            throttle_level=ThrottleLevel(config.throttle_level),
        )


DeviceComputeKernelConfig = WormholeComputeKernelConfig


def init_device_compute_kernel_config(
    arch: object,
    device_kernel_config: WormholeComputeKernelConfig | None = None,
    *,
    math_fidelity: MathFidelity = MathFidelity.LoFi,
    math_approx_mode: bool = True,
    fp32_dest_acc_en: bool = False,
    packer_l1_acc: bool = False,
    dst_full_sync_en: bool = False,
    throttle_level: ThrottleLevel = ThrottleLevel.NO_THROTTLE,
) -> WormholeComputeKernelConfig:
    """A compute config for an architecture (``device.arch()``; all have the same fields).

    Args:
        arch: The architecture; it changes nothing.
        device_kernel_config: A config to give back as it is, instead of making one of the other arguments.
        math_fidelity: See WormholeComputeKernelConfig, as the other arguments.
        math_approx_mode: See there.
        fp32_dest_acc_en: See there.
        packer_l1_acc: See there.
        dst_full_sync_en: See there.
        throttle_level: See there.
    """
    if device_kernel_config is not None:
        return device_kernel_config
    return WormholeComputeKernelConfig(
        math_fidelity=math_fidelity,
        math_approx_mode=math_approx_mode,
        fp32_dest_acc_en=fp32_dest_acc_en,
        packer_l1_acc=packer_l1_acc,
        dst_full_sync_en=dst_full_sync_en,
        throttle_level=throttle_level,
    )
