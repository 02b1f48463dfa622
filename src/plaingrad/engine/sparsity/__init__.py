"""sparsity."""
