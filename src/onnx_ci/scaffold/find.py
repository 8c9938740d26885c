"""Looks for functions that build a model, by reading the source only: nothing is imported or run."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from onnx_ci.records.base import record

_SKIPPED = {"build", "dist", "node_modules", "site-packages", "tests", "test", "venv", "env", "docs"}
_MOST_FILES = 5000
_LARGEST = 2**20


@record
class Candidate:
    """A likely entrypoint, and the name that its model could have."""

    name: str
    entrypoint: str


def find_entrypoints(root: Path) -> list[Candidate]:
    """Finds files of the short form, and functions without required parameters that give an nn.Module.

    Returns:
        In the order of their paths, each with a name of its own.
    """
    found: list[Candidate] = []
    for file in _sources(root):
        path = file.relative_to(root).as_posix()
        if not path.isascii() or not path.isprintable():
            continue
        for function in _functions(file):
            short = function == "make_model"
            inner = file.stem in ("model", "models", "__init__") and file.parent != root
            stem = file.parent.name if inner else file.stem
            common = short or re.fullmatch(r"(build|get|make|load|create)(_model|_net|_module)?", function)
            base = (stem if common else function) or "model"
            entrypoint = path if short else f"{path}:{function}"
            found.append(Candidate(name=_free_name(base, found), entrypoint=entrypoint))
    return found


def _sources(root: Path) -> Iterator[Path]:
    """Python files of the project, the nearest first, without hidden folders and those of tools."""
    folders, seen = [root], 0
    while folders:
        folder = folders.pop(0)
        try:
            entries = sorted(folder.iterdir())
        except OSError:
            continue
        if (folder / "pyvenv.cfg").exists():
            continue
        for entry in entries:
            if entry.is_symlink() or entry.name.startswith("."):
                continue
            if entry.is_dir() and entry.name not in _SKIPPED:
                folders.append(entry)
            elif entry.suffix == ".py" and entry.is_file() and entry.stat().st_size <= _LARGEST:
                seen += 1
                yield entry
        if seen > _MOST_FILES:
            return


def _functions(file: Path) -> list[str]:
    try:
        tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError):
        return []
    modules = {node.name for node in tree.body if isinstance(node, ast.ClassDef) and _is_module(node)}
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")]
    if {"make_model", "make_inputs"} <= {node.name for node in functions}:
        return ["make_model"]
    return [node.name for node in functions if _needs_nothing(node) and _builds(node, modules)]


def _is_module(node: ast.ClassDef) -> bool:
    return any(ast.unparse(base).rpartition(".")[2] == "Module" for base in node.bases)


def _needs_nothing(node: ast.FunctionDef) -> bool:
    arguments = node.args
    positional = len(arguments.posonlyargs) + len(arguments.args) - len(arguments.defaults)
    return positional == 0 and all(default is not None for default in arguments.kw_defaults)


def _builds(node: ast.FunctionDef, modules: set[str]) -> bool:
    if node.returns is not None:
        said = ast.unparse(node.returns).strip("\"'")
        return said.rpartition(".")[2] == "Module" or said in modules
    returned = [inner.value for inner in ast.walk(node) if isinstance(inner, ast.Return) and inner.value is not None]
    return any(_maker(value) in modules for value in returned)


def _maker(value: ast.expr) -> str:
    """The name that is called first in ``Net(10).to("cpu").eval()``."""
    while isinstance(value, ast.Call):
        if isinstance(value.func, ast.Name):
            return value.func.id
        value = value.func.value if isinstance(value.func, ast.Attribute) else value.func
    return ""


def _free_name(base: str, taken: list[Candidate]) -> str:
    name = re.sub(r"[^A-Za-z0-9_-]", "-", base)[:50].lstrip("-") or "model"
    used = {candidate.name.lower() for candidate in taken}
    return next(n for n in (name, *(f"{name}-{at}" for at in range(2, len(taken) + 3))) if n.lower() not in used)
