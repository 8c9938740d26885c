"""The lock files pin everything by hash, agree with each other, and hold all that the tests import."""

from __future__ import annotations

import ast
import re
import sys
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
REQUIREMENTS = ROOT / "requirements"
LOCKS = ["tool.lock", "dev.lock", "weights.lock"]


def pins(lock: str) -> dict[str, tuple[str, int]]:
    """Version and number of hashes by package."""
    found = {}
    for entry in (REQUIREMENTS / lock).read_text().replace("\\\n", " ").splitlines():
        if entry and not entry.startswith("#"):
            specifier, *hashes = entry.split("--hash=sha256:")
            requirement = Requirement(specifier.strip())
            found[canonicalize_name(requirement.name)] = (str(requirement.specifier), len(hashes))
    return found


def declared(file: Path) -> set[str]:
    lines = (line.partition("#")[0].strip() for line in file.read_text().splitlines())
    return {canonicalize_name(Requirement(line).name) for line in lines if line}


@pytest.mark.parametrize("lock", LOCKS)
def test_every_package_is_pinned_to_one_version_with_its_hashes(lock: str):
    entries = pins(lock)
    assert entries
    for name, (specifier, hashes) in entries.items():
        assert specifier.startswith("=="), name
        assert hashes, name


@pytest.mark.parametrize("file", [*LOCKS, "torch.txt", "dev.in", "weights.in"])
def test_no_file_names_an_index_or_a_place(file: str):
    assert not re.search(r"://|@|^-|(^|\s)(/|\./)", (REQUIREMENTS / file).read_text(), re.MULTILINE)


def test_development_runs_on_the_versions_that_the_action_installs():
    tool, dev = pins("tool.lock"), pins("dev.lock")
    assert tool == {name: dev.get(name) for name in tool}


def test_torch_is_pinned_apart_and_what_it_needs_is_locked():
    (torch,) = declared(REQUIREMENTS / "torch.txt")
    assert torch == "torch"
    locked = pins("dev.lock")
    assert "torch" not in locked
    assert {"filelock", "fsspec", "jinja2", "networkx", "setuptools", "sympy", "typing-extensions"} <= locked.keys()


def test_the_inputs_of_the_locks_are_in_them():
    assert declared(REQUIREMENTS / "dev.in") <= pins("dev.lock").keys()
    assert declared(REQUIREMENTS / "weights.in") == pins("weights.lock").keys()


def test_all_that_source_tests_and_examples_import_is_locked():
    files = [file for folder in ("src", "tests", "fixtures", "benchmarks") for file in (ROOT / folder).rglob("*.py")]
    distributions = packages_distributions()
    locked = pins("dev.lock").keys() | declared(REQUIREMENTS / "torch.txt")
    ours = {"onnx_ci", "tests", "benchmarks", *(file.stem for file in (ROOT / "benchmarks").glob("*.py"))}
    unknown = set()
    for file in files:
        for name in imported(ast.parse(file.read_text())) - sys.stdlib_module_names - ours:
            if not {canonicalize_name(each) for each in distributions.get(name, [])} & locked:
                unknown.add(f"{file.relative_to(ROOT)}: {name}")
    assert not unknown


def imported(tree: ast.AST) -> set[str]:
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.partition(".")[0])
    return names
