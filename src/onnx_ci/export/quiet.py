"""Keeps from the user what the exporter says of itself: what it hints at is judged here, by name."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def quiet(logger_name: str, level: int) -> Iterator[None]:
    """Ignores warnings, and lets a logger say only what is at or above a level."""
    logger = logging.getLogger(logger_name)
    before = logger.level
    logger.setLevel(level)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(before)
