"""A program as data and as text: its statements, the builder that makes them, the types of its values, its source.

Every other room is about these. It depends on none of them.
"""
