"""Whole programs of 30 to 150 lines, as their users write them; each runs by itself and knows no derivatives."""
