"""ttnn.cluster: the kind of system that devices are on."""

from ttsim.runtime.system import ClusterType, get_cluster_type
from ttsim.runtime.types.signatures import public

__all__ = ["ClusterType", "get_cluster_type"]

__dir__ = public(globals())
