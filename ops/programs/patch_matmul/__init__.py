"""Matmuls that gather one operand themselves: patches of an image in DRAM, tilized block by block.

One program gathers, tilizes, multiplies, adds a bias, rounds and untilizes, as the real library's conv3d does.
"""
