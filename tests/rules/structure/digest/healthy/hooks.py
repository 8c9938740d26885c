"""The folder is copied about, and comes back with other times and the same bytes."""

import shutil
from pathlib import Path


def tamper(artifact: Path) -> None:
    away = artifact.with_name("away")
    shutil.copytree(artifact, away, copy_function=shutil.copyfile)
    shutil.rmtree(artifact)
    away.rename(artifact)
