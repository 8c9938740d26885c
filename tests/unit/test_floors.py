"""The floors of the house: who may import whom, and what each side may import at all. Read from the source, by ast."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2] / "src" / "onnx_ci"
FLOORS = {
    "__init__": 0,
    "errors": 1,
    "records": 1,
    "numerics": 2,
    "artifact": 2,
    "config": 2,
    "lock": 2,
    "commits": 2,
    "rules": 2,
    "runtime": 3,
    "twin": 3,
    "divergence": 3,
    "export": 4,  # above runtime: what is judged is the very validator that a service imports
    "verify": 4,
    "plan": 5,
    "report": 5,
    "release": 5,
    "scaffold": 5,
    "worker": 5,
    "commands": 6,
    "cli": 7,
    "__main__": 8,
}
USERS_SIDE = {
    "export",
    "verify",
    "runtime",
    "twin",
    "divergence",
    "numerics",
    "artifact",
    "records",
    "errors",
    "__init__",
}
USERS_FILES = {"worker/serve.py", "worker/verbs.py", "worker/watch.py", "worker/__init__.py"}
HEAVY = {"torch", "onnx", "onnxruntime", "onnxscript", "onnx_ir", "numpy", "ml_dtypes"}
MAY_USE = {
    # What runs beside the user's packages has nothing but them; what is not listed has the standard library only.
    "numerics": {"numpy"},
    "artifact": {"numpy", "onnx", "onnxruntime"},
    "runtime": {"numpy", "onnx", "onnxruntime"},
    "twin": {"numpy", "onnx", "onnxruntime"},
    "divergence": {"numpy", "onnx", "onnxruntime"},
    "verify": {"numpy", "onnx", "onnxruntime"},
    "export": {"numpy", "onnx", "onnxruntime", "torch", "onnxscript", "onnx_ir", "ml_dtypes"},
    "worker": {"numpy", "onnx", "onnxruntime", "torch", "onnxscript", "onnx_ir"},
}
LONGEST = 500
NEWER = {
    "tomllib",
    "StrEnum",
    "ExceptionGroup",
    "assert_never",
    "Self",
    "override",
    "UTC",
    "batched",
    "dataclass_transform",
}
"""Names of the standard library that came after Python 3.10: what parses there may still not be there."""

FILES = sorted(ROOT.rglob("*.py"))


def name_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(("onnx_ci", *(parts[:-1] if parts[-1] == "__init__" else parts)))


MODULES = {name_of(path): path for path in FILES}


def job_of(module: str) -> str:
    """The folder (or the file at the top) that a module of ours lies in."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else "__init__"


def is_users(path: Path) -> bool:
    inside = path.relative_to(ROOT)
    return inside.as_posix() in USERS_FILES or (inside.parts[0].removesuffix(".py") in USERS_SIDE)


def typing_only(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING")


def imports(tree: ast.AST, *, inside_functions: bool) -> Iterator[str]:
    """Every module that is imported, absolute; a name that is itself a module of ours counts as that module."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            module = node.module or ""
            for alias in node.names:
                inner = f"{module}.{alias.name}"
                yield inner if inner in MODULES else module
        elif typing_only(node):
            continue
        elif inside_functions or not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            yield from imports(node, inside_functions=inside_functions)


def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


ALL = {name: set(imports(parsed(path), inside_functions=True)) for name, path in MODULES.items()}
AT_LOAD = {name: set(imports(parsed(path), inside_functions=False)) for name, path in MODULES.items()}
USERS = sorted(name for name, path in MODULES.items() if is_users(path))
TOOLS = sorted(set(MODULES) - set(USERS))


def ours(found: set[str]) -> set[str]:
    return {module for module in found if module.split(".")[0] == "onnx_ci"}


def others(found: set[str]) -> set[str]:
    roots = {module.split(".")[0] for module in found} - {"onnx_ci", "__future__"}
    return roots - set(sys.stdlib_module_names)


def test_every_module_has_a_floor() -> None:
    assert {job_of(module) for module in MODULES} <= FLOORS.keys()


def test_modules_import_only_from_floors_below() -> None:
    wrong = [
        f"{module} (floor {FLOORS[job_of(module)]}) imports {other} (floor {FLOORS[job_of(other)]})"
        for module, found in ALL.items()
        for other in sorted(ours(found))
        if job_of(other) != job_of(module) and FLOORS[job_of(other)] >= FLOORS[job_of(module)]
    ]
    assert wrong == []


def test_imported_modules_of_ours_exist() -> None:
    assert {other for found in ALL.values() for other in ours(found)} <= MODULES.keys()


def test_users_side_imports_nothing_that_users_do_not_have() -> None:
    wrong = [
        f"{module} imports {', '.join(sorted(extra))}"
        for module in USERS
        if (extra := others(ALL[module]) - MAY_USE.get(job_of(module), set()))
    ]
    assert wrong == []


def test_users_side_imports_nothing_of_the_tools_side() -> None:
    wrong = [f"{module} imports {other}" for module in USERS for other in ours(ALL[module]) & set(TOOLS)]
    assert wrong == []


def loaded_by(module: str) -> set[str]:
    """All modules of ours that importing one loads, and the packages of others that they import."""
    seen, left, packages = {module}, [module], set[str]()
    while left:
        current = left.pop()
        packages |= others(AT_LOAD[current])
        for other in ours(AT_LOAD[current]):
            chain = [".".join(other.split(".")[: n + 1]) for n in range(len(other.split(".")))]
            left += [name for name in chain if name in MODULES and name not in seen]
            seen.update(chain)
    return packages


def test_tools_side_loads_none_of_the_heavy_packages() -> None:
    wrong = [f"{module} loads {', '.join(sorted(heavy))}" for module in TOOLS if (heavy := loaded_by(module) & HEAVY)]
    assert wrong == []


def test_tools_side_never_imports_them_in_a_function_either() -> None:
    jobs = {"numerics", "runtime", "twin", "divergence", "verify", "export"}
    wrong = [f"{module} imports {other}" for module in TOOLS for other in sorted(others(ALL[module]) & HEAVY)]
    wrong += [f"{module} imports {other}" for module in TOOLS for other in ours(ALL[module]) if job_of(other) in jobs]
    assert wrong == []


def test_no_module_loads_itself_through_others() -> None:
    done: set[str] = set()

    def visit(module: str, path: tuple[str, ...]) -> None:
        assert module not in path, " → ".join([*path[path.index(module) :], module])
        if module in done:
            return
        for other in sorted(ours(AT_LOAD[module])):
            if other in MODULES:
                visit(other, (*path, module))
        done.add(module)

    for module in sorted(MODULES):
        visit(module, ())


def test_no_module_is_long() -> None:
    lines = {module: len(path.read_text(encoding="utf-8").splitlines()) for module, path in MODULES.items()}
    assert {module: count for module, count in lines.items() if count > LONGEST} == {}


def test_users_side_is_python_3_10() -> None:
    wrong = []
    for module in USERS:
        text = MODULES[module].read_text(encoding="utf-8")
        ast.parse(text, feature_version=(3, 10))
        tree = parsed(MODULES[module])
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                names = {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                names = {alias.name for alias in node.names} | {node.module or ""}
            else:
                continue
            if names & NEWER and not _guarded(tree, node):
                wrong.append(f"{module}: {', '.join(sorted(names & NEWER))}")
    assert wrong == []


def _guarded(tree: ast.Module, wanted: ast.AST) -> bool:
    """Whether an import stands under ``if TYPE_CHECKING``, where no interpreter runs it."""
    return any(wanted in ast.walk(node) for node in ast.walk(tree) if typing_only(node))


REFUSE = """
import importlib, json, sys
refused = json.loads(sys.argv[1])
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in refused:
            raise ImportError(f"{name} is not there")
sys.meta_path.insert(0, Refuse())
for name in json.loads(sys.argv[2]):
    importlib.import_module(name)
print(json.dumps(sorted({name.split(".")[0] for name in sys.modules})))
"""


def load(modules: list[str], refused: list[str]) -> set[str]:
    """Imports modules in a fresh interpreter where some packages are not there; gives back what was loaded."""
    command = [sys.executable, "-W", "ignore", "-c", REFUSE, json.dumps(refused), json.dumps(modules)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout))


TOOLS_PACKAGES = ["pydantic", "click", "rich", "github", "tabulate", "junit_xml"]  # onnxruntime brings packaging


def test_users_side_starts_without_the_tools_packages() -> None:
    loaded = load(USERS, TOOLS_PACKAGES)
    assert not (loaded & set(TOOLS_PACKAGES))


def test_judging_starts_without_torch() -> None:
    jobs = {"verify", "runtime", "twin", "divergence", "numerics", "artifact", "records"}
    loaded = load(
        [name for name in MODULES if job_of(name) in jobs], ["torch", "onnxscript", "onnx_ir", *TOOLS_PACKAGES]
    )
    assert "torch" not in loaded


def test_the_light_jobs_start_without_what_models_need() -> None:
    loaded = load(TOOLS, sorted(HEAVY))
    assert not (loaded & HEAVY)


def test_records_need_nothing_but_the_standard_library() -> None:
    loaded = load([name for name in MODULES if job_of(name) == "records"], sorted(HEAVY) + TOOLS_PACKAGES)
    assert not (loaded & (HEAVY | set(TOOLS_PACKAGES)))
