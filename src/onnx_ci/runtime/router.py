"""Picks the variant of a model that takes an input, and runs it: one session each, opened when first needed."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

from onnx_ci.artifact import layout, variants
from onnx_ci.artifact.layout import Artifact, ArtifactError
from onnx_ci.records.variants import Variant
from onnx_ci.runtime import session
from onnx_ci.runtime.overlap import taken_by_both
from onnx_ci.runtime.problems import ContractError, Problem
from onnx_ci.runtime.validator import Validator, load_contract

Provider = str | tuple[str, dict[str, Any]]
CPU: tuple[Provider, ...] = ("CPUExecutionProvider",)


class NoVariantError(ContractError):
    """Inputs that no variant of the model takes.

    Attributes:
        supported: What each variant takes: shape by input.
    """

    def __init__(self, model: str, problems: Sequence[Problem], supported: Mapping[str, Mapping[str, str]]) -> None:
        super().__init__(model, problems)
        self.args = (model, problems, supported)
        self.supported = {name: dict(shapes) for name, shapes in supported.items()}

    def __str__(self) -> str:
        lines = [
            f"{name}: {', '.join(f'{input_} {shape}' for input_, shape in shapes.items())}"
            for name, shapes in self.supported.items()
        ]
        return "\n  - ".join([f"{super().__str__()}\nSupported are:", *lines])


class Router:
    """The variants of one model as one thing to call; threads may share it.

    Args:
        path: The model's list of variants (``<model>.variants.json``), or the folder in which it lies.
        model: Which one, where the folder has lists of several models.
        providers: As ONNX Runtime takes them; every one must be active in a session, or opening it fails.
        session_options: Of onnxruntime.SessionOptions, for every session.
        check_values: Whether values are checked too, as `Validator` does.

    Raises:
        ArtifactError: The list or a contract can't be read or is not what the export wrote, or two variants take the
            same input.
    """

    def __init__(
        self,
        path: Path | str,
        *,
        model: str = "",
        providers: Sequence[Provider] = CPU,
        session_options: Any = None,
        check_values: bool = False,
    ) -> None:
        file = _list_of(Path(path), model)
        found = variants.read(file)
        self.model = found.model
        self._providers = list(providers)
        self._options = session_options
        self._variants = {one.variant: one for one in found.variants}
        self._artifacts = {one.variant: Artifact(file.parent / one.folder) for one in found.variants}
        self._validators = {
            one.variant: _validator(found.model, one, self._artifacts[one.variant], check_values=check_values)
            for one in found.variants
        }
        _refuse_ambiguous(self._validators, file)
        self._sessions: dict[str, Any] = {}
        self._locks = {name: threading.Lock() for name in self._variants}

    @property
    def supported(self) -> dict[str, dict[str, str]]:
        """What each variant takes: ``{"480x640": {"image": "[batch 1..8, 3, 480, 640]"}}``."""
        return {name: validator.shapes() for name, validator in self._validators.items()}

    def pick(self, inputs: Mapping[str, object]) -> str:
        """The variant that takes these inputs.

        Raises:
            NoVariantError: None does.
        """
        problems = {name: validator.problems(inputs) for name, validator in self._validators.items()}
        takers = [name for name, found in problems.items() if not found]
        if len(takers) == 1:
            return takers[0]
        if takers:
            message = (
                f"the variants {' and '.join(takers)} both take these inputs; give them sizes that tell them apart"
            )
            raise ContractError(self.model, [Problem(input="", axis=None, message=message)])
        raise NoVariantError(self.model, _common(problems, inputs), self.supported)

    def run(self, inputs: Mapping[str, object], outputs: Sequence[str] | None = None) -> dict[str, Any]:
        """Runs the variant that takes these inputs.

        Args:
            inputs: Arrays by name.
            outputs: Names of those that are wanted; all of them without it.

        Raises:
            NoVariantError: No variant takes them.
            ArtifactError: The variant's files are not those that were exported, or don't open.
        """
        opened = self.session(self.pick(inputs))
        names = list(outputs) if outputs is not None else [item.name for item in opened.get_outputs()]
        return dict(zip(names, opened.run(names, dict(inputs)), strict=True))

    def session(self, variant: str) -> Any:
        """The variant's onnxruntime.InferenceSession, opened by the first who asks; the others wait for it.

        Raises:
            ArtifactError: The variant's files are not those that were exported, or don't open.
        """
        opened = self._sessions.get(variant)
        if opened is None:
            with self._locks[variant]:
                opened = self._sessions.get(variant)
                if opened is None:
                    self._sessions[variant] = opened = self._open(variant)
        return opened

    def _open(self, variant: str) -> Any:
        artifact, listed = self._artifacts[variant], self._variants[variant]
        if artifact.digest() != listed.artifact:
            message = f"{layout.MANIFEST} is not the one that the list of variants names"
            raise ArtifactError(message, where=str(artifact.folder), hint=session.WHOLE)
        session.check_files(artifact)
        return session.open_file(artifact, self._providers, self._options)


def _list_of(path: Path, model: str) -> Path:
    if path.is_file():
        return path
    if not path.is_dir():
        raise ArtifactError(
            "no such folder", where=str(path), hint="Name the folder in which the variants' folders lie."
        )
    if model:
        return variants.path_of(path, model)
    found = variants.lists_in(path)
    if len(found) == 1:
        return found[0]
    names = ", ".join(file.name for file in found)
    raise ArtifactError(
        f"several models have variants here: {names}" if found else f"no list of variants (*{variants.SUFFIX}) is here",
        where=str(path),
        hint="Say which by model=…." if found else "Export a model with variants, or name the right folder.",
    )


def _validator(model: str, listed: Variant, artifact: Artifact, *, check_values: bool) -> Validator:
    path = artifact.folder / layout.CONTRACT
    hint = "Put the folders of one export side by side, with the list that it wrote."
    if not path.is_file():
        raise ArtifactError(f"the folder of the variant {listed.variant} has no {layout.CONTRACT}", where=str(path))
    if layout.sha256(path) != listed.contract:
        raise ArtifactError("it is not the contract that the list of variants names", where=str(path), hint=hint)
    contract = load_contract(path)
    if (contract.model, contract.variant) != (model, listed.variant):
        message = f"it is the contract of {contract.model}@{contract.variant}, not of {model}@{listed.variant}"
        raise ArtifactError(message, where=str(path), hint=hint)
    return Validator(contract, check_values=check_values)


def _refuse_ambiguous(validators: Mapping[str, Validator], file: Path) -> None:
    for (first, one), (second, other) in combinations(validators.items(), 2):
        shared = taken_by_both(one.contract, other.contract)
        if shared is not None:
            example = ", ".join(f"{name} {shape}" for name, shape in shared.items())
            raise ArtifactError(
                f"the variants {first} and {second} both take {example or 'every input'}",
                where=str(file),
                hint="Give the variants sizes that tell them apart, and export again.",
            )


def _common(problems: Mapping[str, Sequence[Problem]], inputs: object) -> list[Problem]:
    """What is wrong whichever variant is meant: names and dtypes; else the sizes that came."""
    first, *rest = problems.values()
    found = [one for one in first if all(one in others for others in rest)]
    if found or not isinstance(inputs, Mapping):
        return found
    came = ", ".join(f"{name} {list(getattr(value, 'shape', []))}" for name, value in inputs.items())
    return [Problem(input="", axis=None, message=f"no variant has these sizes: {came}")]
