"""users_code."""
