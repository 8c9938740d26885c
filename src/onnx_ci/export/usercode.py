"""Loads the user's files and functions, and says of what they raise where it was raised."""

from __future__ import annotations

import difflib
import hashlib
import importlib
import importlib.util
import inspect
import sys
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from onnx_ci.errors import OnnxCiError, UsageError
from onnx_ci.export.places import Places, chain


def split(reference: str) -> tuple[str, str]:
    """``path.py:function`` or ``package.module:function`` in two; the function is empty for ``path.py``."""
    head, _, tail = reference.rpartition(":")
    if head and tail.isidentifier():
        return head, tail
    return reference, ""


def load(target: str, root: Path, *, where: str) -> tuple[ModuleType, Path]:
    """Imports a file, given relative to `root`, or a module by its dotted name; gives its file too.

    Raises:
        UsageError: There is no such file or module.
        OnnxCiError: Importing it raised.
    """
    root = root.resolve()
    file = root / target
    if not target.endswith(".py"):
        if file.is_file():
            raise UsageError(f"{target} is no Python file", where=where, hint="Name a .py file, or a module.")
        _put_first(root)
        return _import(target, root, where, wanted=target)
    if not file.is_file():
        raise UsageError(f"there is no file {target}", where=where, hint=_near_file(file))
    file = file.resolve()
    for folder in (root, file.parent):
        _put_first(folder)
    return _import_file(file, root, where)


def function(module: ModuleType, file: Path, name: str, *, where: str) -> Callable[..., Any]:
    """A function of the user's module.

    Raises:
        UsageError: There is none of this name, or it can't be called.
    """
    found = getattr(module, name, None)
    if callable(found):
        return found  # type: ignore[no-any-return] # whatever the user's file has
    if found is not None:
        raise UsageError(f"{name} in {file.name} is {kind(found)}, not a function", where=where)
    own = [key for key, value in vars(module).items() if callable(value) and not key.startswith("_")]
    near = difflib.get_close_matches(name, own, 1)
    hint = f"Did you mean {near[0]}?" if near else f"{file.name} has {', '.join(sorted(own)[:8]) or 'no function'}."
    raise UsageError(f"{file.name} has no function {name}", where=where, hint=hint)


def run(wanted: Callable[..., Any], root: Path, *, where: str, name: str, **kwargs: Any) -> Any:
    """Calls the user's function; a generator is drawn from to its end.

    Raises:
        UsageError: It does not take these arguments.
        OnnxCiError: It raised, or called exit().
    """
    try:
        inspect.signature(wanted).bind(**kwargs)
    except ValueError:  # no signature to be had: a builtin, which will say so itself
        pass
    except TypeError as error:
        given = ", ".join(kwargs) or "none"
        raise UsageError(
            f"{name}() can't be called with these arguments ({given}): {error}",
            where=where,
            hint="kwargs in the config must be the function's own parameters.",
        ) from error
    try:
        made = wanted(**kwargs)
        return list(made) if inspect.isgenerator(made) else made
    except (Exception, SystemExit) as error:
        raise raised(error, f"{name}()", root, where=where) from error


def accepted(wanted: Callable[..., Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the arguments that a function has parameters for; all where that can't be read."""
    try:
        parameters = inspect.signature(wanted).parameters
    except (TypeError, ValueError):
        return dict(kwargs)
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        return dict(kwargs)
    return {name: value for name, value in kwargs.items() if name in parameters}


def raised(error: BaseException, who: str, root: Path, *, where: str) -> OnnxCiError:
    """What the user's code raised, as an error with the user's own line; the whole traceback goes to the log."""
    traceback.print_exception(error)
    place = Places.of(root).of_error(error)
    if isinstance(error, SyntaxError) and error.filename:
        relative = Places.of(root).relative(error.filename) or Path(error.filename).name
        shown = f"{relative}:{error.lineno}"
    else:
        shown = place.shown if place else where
    what = f"{who} called exit({error.code!r})" if isinstance(error, SystemExit) else f"{who} raised {_said(error)}"
    return OnnxCiError(what, where=shown, hint=_hint(error))


def kind(value: Any) -> str:
    """What a value is, in words, for messages."""
    if value is None:
        return "None"
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if isinstance(value, tuple):
        return f"a tuple ({', '.join(type(item).__name__ for item in value)})"
    name = type(value).__name__
    return f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name}"


def _said(error: BaseException) -> str:
    text = str(error).strip()
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _hint(error: BaseException) -> str:
    for link in chain(error):
        if isinstance(link, ModuleNotFoundError) and link.name:
            top = link.name.partition(".")[0]
            return f"The package that provides {top} is missing in this interpreter: {sys.executable}"
        if isinstance(link, FileNotFoundError):
            return f"Paths are relative to the folder that onnx-ci was started in: {Path.cwd().name}"
    return "Run the function by itself; the log has the whole traceback."


def _import_file(file: Path, root: Path, where: str) -> tuple[ModuleType, Path]:
    """As a script would be: under its own name, so that what its neighbours import is the same module."""
    loaded = sys.modules.get(file.stem)
    if loaded is not None and _file(loaded) == file:
        return loaded, file
    importlib.invalidate_caches()
    if loaded is None and file.stem.isidentifier() and _found(file.stem) == file:
        name = file.stem
    else:  # the name is another module's
        name = f"{file.stem}_{hashlib.sha256(str(file).encode()).hexdigest()[:8]}"
    if name in sys.modules:
        return sys.modules[name], file
    try:
        return _execute(name, file), file
    except ImportError as error:
        package = _package(file)
        if package and "no known parent package" in str(error):  # relative imports: it is meant as part of a package
            _put_first(package[0])
            return _import(package[1], root, where, wanted=package[1])
        raise raised(error, file.name, root, where=where) from error
    except (Exception, SystemExit) as error:
        raise raised(error, file.name, root, where=where) from error


def _execute(name: str, file: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise ImportError(f"{file.name} can't be imported")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses, pickle and typing look a class's module up here
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _import(name: str, root: Path, where: str, *, wanted: str) -> tuple[ModuleType, Path]:
    try:
        module = importlib.import_module(name)
    except (Exception, SystemExit) as error:
        if isinstance(error, ModuleNotFoundError) and error.name and f"{wanted}.".startswith(f"{error.name}."):
            raise UsageError(
                f"there is no module {error.name}",
                where=where,
                hint="Name a module that can be imported from the config's folder, or a file: path.py:function.",
            ) from error
        raise raised(error, name, root, where=where) from error
    return module, _file(module) or root


def _package(file: Path) -> tuple[Path, str] | None:
    """The folder above the outermost package that a file lies in, and its dotted name from there."""
    parts, folder = [file.stem], file.parent
    while (folder / "__init__.py").is_file():
        parts.insert(0, folder.name)
        folder = folder.parent
    return (folder, ".".join(parts)) if len(parts) > 1 else None


def _found(name: str) -> Path | None:
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return None
    return Path(spec.origin).resolve() if spec and spec.origin and spec.has_location else None


def _file(module: ModuleType) -> Path | None:
    file = getattr(module, "__file__", None)
    return Path(file).resolve() if file else None


def _put_first(folder: Path) -> None:
    if str(folder) in sys.path:
        return
    sys.path.insert(0, str(folder))


def _near_file(file: Path) -> str:
    if not file.parent.is_dir():
        return f"There is no folder {file.parent.name} either; paths are relative to the config's folder."
    near = difflib.get_close_matches(file.name, [item.name for item in file.parent.glob("*.py")], 1)
    return f"Did you mean {near[0]}?" if near else "Paths are relative to the config's folder."
