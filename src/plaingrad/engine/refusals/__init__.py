"""refusals."""
