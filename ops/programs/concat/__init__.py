"""The program that puts tensors one behind the other: its work, buffers, values and cycles."""
