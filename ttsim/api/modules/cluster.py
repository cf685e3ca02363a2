"""ttnn.cluster: the kind of system that devices are on."""

from ttsim.runtime.system import ClusterType as ClusterType, get_cluster_type as get_cluster_type
