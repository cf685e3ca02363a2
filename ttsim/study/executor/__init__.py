"""Crews: many points on the processes of this machine or of a cluster, whatever becomes of one of them."""
