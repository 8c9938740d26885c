"""The lock is older than what is installed, which is meant for a while."""

from pathlib import Path


def prepare(project: Path) -> None:
    (project / "requirements.lock").write_text("numpy==1.13.0\n")
