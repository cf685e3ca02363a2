"""Planners of attention: softmax, scaled dot products, heads that are split and joined, embeddings."""
