"""What no single value tells: ranges, names that must agree, files that must be there."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path as FilePath
from typing import Any

from onnx_ci.config import paths, variants
from onnx_ci.config.problems import Path, Problem, closest, did_you_mean, show
from onnx_ci.config.schema import Dim, Input, Model, Root
from onnx_ci.records.result import EXPORT_TARGET

_FLOATING = ("float", "bfloat", "complex")
_WHOLE = ("int", "uint", "bool")


def check(root: Root, folder: FilePath, *, today: datetime.date, cut: set[Path]) -> Iterator[Problem]:
    """Looks for contradictions in a config whose single values are sound.

    Args:
        root: The config.
        folder: The project, which its paths are relative to.
        today: For the tolerances that expire.
        cut: Paths of faulty parts that were left out or filled in: what hangs on them is not judged.
    """
    if not root.models and not cut:
        yield Problem(path=("models",), message="no model is declared", hint='add [models.NAME], or run "onnx-ci init"')
    for name, model in root.models.items():
        yield from _model(
            ("models", name), model, folder, today, {path[2:] for path in cut if path[:2] == ("models", name)}
        )
    for at, file in enumerate(root.lock.files):
        yield from _fault(("lock", "files", at), paths.file_fault(folder, file, inside=True))
    yield from _fault(("golden", "dir"), paths.folder_fault(folder, root.golden.dir))


def _model(at: Path, model: Model, folder: FilePath, today: datetime.date, cut: set[Path]) -> Iterator[Problem]:
    if ("entrypoint",) not in cut:
        yield from _fault((*at, "entrypoint"), paths.entrypoint_fault(folder, model.entrypoint))
    if model.reference is not None:
        yield from _fault((*at, "reference"), paths.function_fault(folder, model.reference))
    for index, cases in enumerate(model.cases):
        yield from _fault((*at, "cases", index), paths.cases_fault(folder, cases))
    for index, file in enumerate(model.preprocessing):
        yield from _fault((*at, "preprocessing", index), paths.file_fault(folder, file, inside=True))
    if model.export.exporter == "torchscript" and not model.export.optimize:
        yield Problem(
            path=(*at, "export", "optimize"),
            message="the older exporter has no optimizer to leave out",
            hint="remove the key; export_kwargs() may give do_constant_folding=False",
        )
    for name, given in model.inputs.items():
        yield from _input((*at, "inputs", name), given)
    for name, dim in model.dims.items():
        yield from _dim((*at, "dims", name), dim)
    for name, tolerance in model.parity.outputs.items():
        if tolerance.expires and tolerance.expires < today:
            yield Problem(
                path=(*at, "parity", "outputs", name, "expires"),
                message=f"this tolerance expired on {tolerance.expires}",
                hint="review it again: remove it, or give it a new reason and date",
            )
    if not any(path[:1] == ("inputs",) for path in cut):
        yield from _inputs(at, model, sure=("entrypoint",) not in cut)
    if model.outputs is not None:
        for name in model.parity.outputs:
            yield from _output((*at, "parity", "outputs", name), name, model.outputs)
        for index, name in enumerate(model.parity.allow_nan):
            yield from _output((*at, "parity", "allow_nan", index), name, model.outputs)
    if not cut:
        yield from variants.check(at, model)


def _inputs(at: Path, model: Model, *, sure: bool) -> Iterator[Problem]:
    """What refers to inputs; with the short form, which `sure` excludes, its own functions may name them."""
    if sure and ":" in model.entrypoint:
        named = variants.dims_named(model)
        for name in model.dims:
            if name not in named:
                unknown = [other for other in named if other not in model.dims]
                yield Problem(
                    path=(*at, "dims", name),
                    message="no shape under inputs names this dim",
                    hint=did_you_mean(name, unknown) or f'such as inputs.x.shape = ["{name}", 3]',
                )
        for name in model.inputs if model.input_names else ():
            parameter = name.partition(".")[0].partition("[")[0]
            near = closest(parameter, set(model.input_names or ()) - set(model.inputs))
            if parameter not in (model.input_names or ()) and near:
                yield Problem(
                    path=(*at, "inputs", name), message="input_names has no such input", hint=f"did you mean {near}?"
                )


def _output(at: Path, name: str, outputs: list[str]) -> Iterator[Problem]:
    if name not in outputs:
        known = f"outputs are: {', '.join(outputs)}" if outputs else "outputs is empty"
        yield Problem(path=at, message=f"no output is called {show(name)}", hint=did_you_mean(name, outputs) or known)


def _dim(at: Path, dim: Dim) -> Iterator[Problem]:
    low, high = dim.min or 0, dim.max
    if high is not None and low > high:
        yield Problem(path=at, message=f"min {low} is larger than max {high}")
        return
    first = -(-low // dim.multiple_of) * dim.multiple_of
    if high is not None and first > high:
        yield Problem(path=at, message=f"no multiple of {dim.multiple_of} lies between {low} and {high}")
    example = dim.example
    if example is None:
        return
    if example < low or (high is not None and example > high):
        end = f"above max {high}" if high is not None and example > high else f"below min {low}"
        yield Problem(path=(*at, "example"), message=f"{example} is {end}")
    elif example % dim.multiple_of:
        yield Problem(path=(*at, "example"), message=f"{example} is not a multiple of {dim.multiple_of}")


def _input(at: Path, given: Input) -> Iterator[Problem]:
    numbers = {"low": given.low, "high": given.high}
    stated = {key: value for key, value in numbers.items() if value is not None}
    if given.values is not None and stated:
        yield Problem(path=at, message=f"values and {next(iter(stated))} exclude each other", hint="keep one of them")
    if given.low is not None and given.high is not None and given.low > given.high:
        yield Problem(path=at, message=f"low {given.low:g} is larger than high {given.high:g}")
    if given.nonfinite and given.dtype is not None and not given.dtype.startswith(_FLOATING):
        yield Problem(path=(*at, "nonfinite"), message=f"{given.dtype} has neither NaN nor infinity")
    listed = [((*at, "values", index), value) for index, value in enumerate(given.values or ())]
    for path, value in [*(((*at, key), value) for key, value in stated.items()), *listed]:
        if given.dtype is not None and (message := _misfit(given.dtype, value)):
            yield Problem(path=path, message=message)


def _misfit(dtype: str, value: float) -> str:
    """Why a number is no value of a dtype; empty when it is one."""
    if dtype == "string" or dtype.startswith("complex"):
        return f"a {dtype} input has no range of numbers"
    if not dtype.startswith(_WHOLE):
        return ""
    if value != int(value):
        return f"{value:g} is no {dtype}"
    bits = 1 if dtype == "bool" else int(dtype.lstrip("uint"))
    signed = dtype.startswith("int")
    least, most = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    # A TOML integer arrives as a float, which rounds the ends of 64 bits outwards.
    return "" if float(least) <= value <= float(most) else f"{value:g} does not fit into {dtype}"


def names(labels: Mapping[str, Path], targets: Iterable[str]) -> Iterator[Problem]:
    """Looks for names that would meet in one file: on a disk that ignores case, or as ``model.target.json``.

    Args:
        labels: The place in the config of each ``model`` and ``model@variant``.
        targets: Names.
    """
    targets = list(targets)
    yield from _same_but_for_case(labels)
    yield from _same_but_for_case({name: ("targets", name) for name in targets})
    for target in targets:
        if target.lower() == EXPORT_TARGET:
            yield Problem(path=("targets", target), message="is kept for the results of the export", hint="rename it")
    taken: dict[str, tuple[str, str]] = {}
    for label, path in labels.items():
        for target in dict.fromkeys((*targets, EXPORT_TARGET)):
            other = taken.setdefault(f"{label}.{target}", (label, target))
            if other != (label, target):
                yield Problem(
                    path=path,
                    message=f"its results on {show(target)} and those of {show(other[0])} on {show(other[1])} "
                    f"would both be {label}.{target}.json",
                    hint="rename one of them",
                )


def _same_but_for_case(names: Mapping[str, Path]) -> Iterator[Problem]:
    taken: dict[str, str] = {}
    for name, path in names.items():
        other = taken.setdefault(name.lower(), name)
        if other != name:
            yield Problem(path=path, message=f"is {show(other)} but for its case: the folders would be one")


def _fault(at: Path, fault: Any) -> Iterator[Problem]:
    if fault is not None:
        yield Problem(path=at, message=fault.message, hint=fault.hint)
