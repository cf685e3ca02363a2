"""A machine: memories, tiles, formats, a matrix unit and clocks, which know nothing of convolutions."""
