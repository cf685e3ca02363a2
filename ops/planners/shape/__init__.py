"""Plans of operations that move elements: pad, slice, permute, reshape, fold."""
