"""Exports one model in its own worker: entrypoint, cases, capture, program, artifact."""
