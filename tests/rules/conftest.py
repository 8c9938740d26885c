"""One pair of servers for all projects: exporters that have torch loaded, and verifiers that have not."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from onnx_ci.worker.launch import Workers
from tests.rules.projects import Stage


@pytest.fixture(scope="session")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    room = tmp_path_factory.mktemp("project")
    with (
        Workers(Path(sys.executable), folder=room, environment=os.environ, preload=["torch", "warm"]) as exporters,
        Workers(Path(sys.executable), folder=room, environment=os.environ, preload=["verify"]) as verifiers,
    ):
        yield Stage(room, exporters, verifiers)
