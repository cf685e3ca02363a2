"""A machine: memories, tiles, formats, a matrix unit, clocks.

It knows bytes, tiles and cycles, and nothing of convolutions.
"""
