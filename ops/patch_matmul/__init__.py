"""Matmuls that gather one operand themselves: patches of an image in DRAM, tilised block by block.

One program gathers, tilises, multiplies, adds a bias, rounds and untilises, as the real library's conv3d does.
"""
