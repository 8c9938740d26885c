"""The conditions of a result are read from this interpreter and this machine."""

from __future__ import annotations

import importlib.metadata
import os
import sys
from pathlib import Path

import pytest
from packaging.markers import Marker, default_environment

from onnx_ci.artifact import machine
from onnx_ci.records.model import LockSpec


def test_packages_are_found_by_normalized_name():
    found = machine.packages()
    assert found["onnx-ci"] == importlib.metadata.version("onnx-ci")
    assert found["typing-extensions"] == importlib.metadata.version("typing_extensions")
    assert all(name == name.lower() and "_" not in name for name in found)


def test_markers_are_those_that_packaging_sees():
    ours, theirs = machine.markers(), default_environment()
    assert {name: ours[name] for name in ours} == {name: theirs[name] for name in ours}
    assert Marker(f"python_version == '{sys.version_info[0]}.{sys.version_info[1]}'").evaluate(dict(ours))


def test_the_processor_is_named(tmp_path: Path):
    (tmp_path / "cpuinfo").write_text("processor\t: 0\nmodel name\t: Fast CPU @ 3GHz\nmodel name\t: other\n")
    assert machine.cpu_model(tmp_path / "cpuinfo") == "Fast CPU @ 3GHz"
    assert machine.cpu_model(tmp_path / "missing")


@pytest.mark.parametrize(("text", "cores"), [("150000 100000", 2), ("50000 100000", 1), ("max 100000", None)])
def test_a_container_quota_limits_the_cores(tmp_path: Path, text, cores):
    (tmp_path / "cpu.max").write_text(text)
    own = len(os.sched_getaffinity(0))
    assert machine.usable_cores(tmp_path) == min(own, cores or own)


def test_an_older_control_group_is_read_too(tmp_path: Path):
    (tmp_path / "cpu").mkdir()
    (tmp_path / "cpu/cpu.cfs_quota_us").write_text("100000\n")
    (tmp_path / "cpu/cpu.cfs_period_us").write_text("100000\n")
    assert machine.usable_cores(tmp_path) == 1


def test_everything_is_described_with_its_lock():
    described = machine.describe(LockSpec(files={"b.lock": "22", "a.lock": "11"}))
    assert described.python == ".".join(map(str, sys.version_info[:3]))
    assert "CPUExecutionProvider" in described.providers
    assert [(lock.path, lock.sha256) for lock in described.locks] == [("a.lock", "11"), ("b.lock", "22")]
