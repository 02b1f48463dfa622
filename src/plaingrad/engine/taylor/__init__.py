"""taylor."""
