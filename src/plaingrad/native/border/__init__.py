"""border."""
