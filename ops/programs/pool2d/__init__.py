"""The program that takes the largest number of every window: its work, buffers, values and cycles."""
