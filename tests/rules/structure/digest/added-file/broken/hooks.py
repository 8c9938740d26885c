"""Somebody left a file in the folder."""

from pathlib import Path


def tamper(artifact: Path) -> None:
    (artifact / "notes.txt").write_text("seen")
