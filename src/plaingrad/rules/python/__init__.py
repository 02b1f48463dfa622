"""Facts about builtins and the standard library."""
