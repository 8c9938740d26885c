"""Faults in the files of two architectures are named at the node that they were put into."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.torch

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("model", ["gru", "vit"])
def test_a_fault_is_named_where_it_is(model):
    command = [sys.executable, "-m", "benchmarks.mutation.naming", "fixtures/architectures.toml", model]
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    done = subprocess.run(
        [*command, "--mutants", "12"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    right, shown = (int(word) for word in done.stdout.splitlines()[-1].split()[1:4:2])
    assert right == shown > 3, done.stdout
