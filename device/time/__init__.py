"""Time: stages, processors and circular buffers that wait for each other, the network, DRAM."""
