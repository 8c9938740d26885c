"""Opens the session of a service, and refuses at startup what would only be noticed in production.

The same truth as the stages structure and provider: the exported bytes, the provider that was named, every node on it
beside shape arithmetic, and the runtime that the file was proved on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from onnx_ci.artifact import layout
from onnx_ci.artifact.layout import Artifact, ArtifactError
from onnx_ci.numerics.words import some
from onnx_ci.records.contract import Contract
from onnx_ci.records.model import CPU, TargetSpec
from onnx_ci.runtime.options import configure, provider
from onnx_ci.runtime.placement import elsewhere, recorded
from onnx_ci.runtime.validator import Validator

WHOLE = "Copy the artifact's folder again, as a whole."
_SHOWN = 5


class SessionRefusedError(ArtifactError):
    """A session that would not be the one that was proved: the provider, a node's place, or the runtime's version."""


class ServingSession:
    """A session with the check of its inputs; threads may share it.

    Attributes:
        session: The onnxruntime.InferenceSession.
        validator: Of its inputs, made from the contract.
        digest: The artifact's.
    """

    def __init__(self, session: Any, validator: Validator, digest: str) -> None:
        self.session, self.validator, self.digest = session, validator, digest
        self._outputs = [item.name for item in session.get_outputs()]

    @property
    def contract(self) -> Contract:
        """What the file promises."""
        return self.validator.contract

    def run(self, inputs: Mapping[str, object], outputs: Sequence[str] | None = None) -> dict[str, Any]:
        """Checks the inputs and runs them.

        Args:
            inputs: Arrays by name.
            outputs: Names of those that are wanted; all of them without it.

        Raises:
            ContractError: The contract does not allow them.
        """
        self.validator(inputs)
        names = list(outputs) if outputs is not None else self._outputs
        return dict(zip(names, self.session.run(names, dict(inputs)), strict=True))


def open_session(
    folder: Path | str,
    target: str | TargetSpec = "",
    *,
    digest: str = "",
    session_options: Any = None,
    check_values: bool = False,
    any_version: bool = False,
) -> ServingSession:
    """Opens an artifact on a target as it was judged there, or says why not.

    Args:
        folder: Of the artifact.
        target: A name among those that the artifact was exported for, or one of your own; left out, the only one.
        digest: The artifact's, as the gate reported it; left out, the files are held against the manifest alone.
        session_options: Of onnxruntime.SessionOptions, with libraries of operators registered; what the target says is
            set in it.
        check_values: Whether the values of inputs are checked too, as `Validator` does.
        any_version: Lets another minor version of ONNX Runtime pass than the one the file was proved on.

    Raises:
        ArtifactError: The folder can't be read, or it is not what was exported.
        SessionRefusedError: The provider is not there or not active, a node would run elsewhere, or ONNX Runtime has
            another version.
    """
    artifact = Artifact(Path(folder))
    found = check_files(artifact, digest)
    contract, chosen = artifact.contract(), _target(artifact, target)
    if not any_version:
        _check_version(contract, artifact)
    session = open_file(artifact, [provider(chosen)], _options(session_options, chosen))
    if chosen.provider != CPU and chosen.fallback == "forbid":
        _refuse_fallback(session, artifact, chosen)
    return ServingSession(session, Validator(contract, check_values=check_values), found)


def open_file(artifact: Artifact, providers: Sequence[Any], options: Any = None) -> Any:
    """An onnxruntime.InferenceSession on which each provider that is named is active.

    Raises:
        SessionRefusedError: One is not there, or did not come up.
    """
    import onnxruntime  # the first session pays for it, not the import of this module

    wanted = [one if isinstance(one, str) else one[0] for one in providers]
    there = onnxruntime.get_available_providers()
    absent = [name for name in wanted if name not in there]
    if absent:
        raise SessionRefusedError(
            f"ONNX Runtime here has no {', '.join(absent)}",
            where=str(artifact.folder),
            hint=f"It has {', '.join(there)}. The package onnxruntime-gpu has those for NVIDIA's devices.",
        )
    options = options if options is not None else onnxruntime.SessionOptions()
    # Without enable_fallback=0 a provider that fails is replaced by the CPU.
    session = onnxruntime.InferenceSession(str(artifact.model), options, providers=list(providers), enable_fallback=0)
    active = session.get_providers()
    if any(name not in active for name in wanted):
        raise SessionRefusedError(
            f"asked for {', '.join(wanted)}, active are {', '.join(active)}",
            where=str(artifact.folder),
            hint="The provider's libraries or its device do not load: look at the driver and at the versions it needs.",
        )
    return session


def check_files(artifact: Artifact, digest: str = "") -> str:
    """Holds the model and its weights against the manifest, and that against a digest; a service need not carry the
    cases along.

    Returns:
        The artifact's digest.

    Raises:
        ArtifactError: They are not what was exported.
    """
    found = artifact.digest()
    if digest and found != digest:
        message = f"the artifact's digest is {found}, and {digest} was asked for"
        raise ArtifactError(message, where=str(artifact.folder), hint=WHOLE)
    entries = artifact.manifest()
    if layout.MODEL not in entries:
        raise ArtifactError(f"{layout.MANIFEST} names no {layout.MODEL}", where=str(artifact.folder), hint=WHOLE)
    for name in (layout.MODEL, layout.DATA, layout.CONTRACT):
        path = artifact.folder / name
        if name not in entries and not path.exists():
            continue
        entry = entries.get(name)
        same = path.is_file() and not path.is_symlink() and entry is not None and path.stat().st_size == entry.size
        if entry is None or not same or layout.sha256(path) != entry.sha256:
            message = f"{name} is {'not the exported one' if path.exists() else 'missing'}"
            raise ArtifactError(message, where=str(artifact.folder), hint=WHOLE)
    return found


def _target(artifact: Artifact, asked: str | TargetSpec) -> TargetSpec:
    if isinstance(asked, TargetSpec):
        return asked
    targets = artifact.job().targets
    names = ", ".join(one.name for one in targets)
    chosen = [one for one in targets if asked in ("", one.name)]
    if len(chosen) != 1:
        raise ArtifactError(
            f"it was exported for no target {asked}" if asked else f"it was exported for several targets: {names}",
            where=str(artifact.folder),
            hint=f"Name one of {names}, or give a TargetSpec.",
        )
    return chosen[0]


def _check_version(contract: Contract, artifact: Artifact) -> None:
    import onnxruntime

    installed = str(onnxruntime.__version__)
    packages = contract.environment.packages
    proved = next((packages[name] for name in ("onnxruntime", "onnxruntime-gpu") if name in packages), installed)
    if installed.split(".")[:2] != proved.split(".")[:2]:
        raise SessionRefusedError(
            f"ONNX Runtime is {installed} here, and the file was proved on {proved}",
            where=str(artifact.folder),
            hint=f"Install {proved}, export with {installed}, or pass any_version=True if you have tested it.",
        )


def _options(given: Any, target: TargetSpec) -> Any:
    import onnxruntime

    options = given if given is not None else onnxruntime.SessionOptions()
    configure(options, target)
    return options


def _refuse_fallback(session: Any, artifact: Artifact, target: TargetSpec) -> None:
    """A node beside shape arithmetic that does not run on the provider that was named is a slower service."""
    nodes = recorded(session)
    if nodes is None:
        raise SessionRefusedError(
            "this ONNX Runtime does not tell where each node runs, so a fallback would go unseen",
            where=str(artifact.folder),
            hint='Install a newer one, or set fallback = "allow" for the target.',
        )
    apart = elsewhere(nodes, target, _shape_nodes(artifact))
    strays = [f"{node.op} {node.name}".strip() for node in apart if node.op not in target.cpu_ops]
    if strays:
        raise SessionRefusedError(
            f"{len(strays)} of its nodes would not run on {target.provider}: {some(strays, _SHOWN)}",
            where=str(artifact.folder),
            hint='List them under cpu_ops of the target if the CPU is right for them, or set fallback = "allow".',
        )


def _shape_nodes(artifact: Artifact) -> set[str]:
    """Needs the package onnx; without it only the operators that never compute anything else are let through."""
    try:
        import onnx
    except ImportError:
        return set()
    from onnx_ci.artifact import dataflow

    return dataflow.shape_arithmetic(onnx.load(str(artifact.model), load_external_data=False))
