"""Judges one artifact on one target, without torch."""
