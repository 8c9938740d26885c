"""Starts the interpreter of the user, watches its workers, and validates what they hand over."""
