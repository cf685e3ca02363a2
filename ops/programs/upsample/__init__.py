"""The programs that repeat pixels: their work, buffers, values and cycles."""
