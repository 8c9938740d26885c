"""What a worker leaves in its log, so that one that is ended in the middle of its work has said where it was."""

from __future__ import annotations

import sys


def say(text: str) -> None:
    """A line of its own, there at once: nothing is written any more by a process that native code brings down."""
    print(text, file=sys.stderr, flush=True)
