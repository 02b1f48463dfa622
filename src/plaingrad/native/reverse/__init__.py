"""reverse."""
