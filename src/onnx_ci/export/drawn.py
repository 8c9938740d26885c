"""Numbers that were drawn and then became constants of the file: at the export, or when the module was made."""

from __future__ import annotations

from onnx_ci.records.result import Finding, finding
from onnx_ci.records.source_map import Origin

RULE = "export.drawn-constant"


def constants(asked: str, constant: str, effect: str, origin: Origin | None) -> list[Finding]:
    """The verdict on a constant that another seed makes another one, at the very same example.

    Args:
        asked: The rule that can't be judged for it.
        constant: The constant in both files, in words.
        effect: What the two files' outputs differ by.
        origin: Where it comes from.
    """
    place = f" ({origin.file}:{origin.line})" if origin and origin.file else ""
    inside = f" in {origin.module}" if origin and origin.module else ""
    return [
        finding(
            RULE, "fail", origin.module if origin else "",
            f"the file holds numbers that were drawn at the export: at the same example, with another seed, "
            f"{constant}{inside}{place}, and the outputs differ ({effect})",
            hint="Draw them when the module is made and keep them in a buffer that the checkpoint holds, or take them "
            "as an input.",
            file=origin.file if origin else None, line=origin.line if origin and origin.file else None,
        ),
        finding(asked, "skip", "", f"two exports hold other numbers, since they are drawn anew each time: see {RULE}"),
    ]  # fmt: skip


def weights(asked: str) -> list[Finding]:
    """The verdict on an entrypoint that gives other weights each time, though all generators stood alike."""
    return [
        finding(
            RULE, "warn", "weights",
            "two loads of the entrypoint give other weights: the file can't be made again, and nobody else has its "
            "weights",
            hint="Load a checkpoint in the entrypoint, or seed the generator that its weights are drawn from.",
        ),
        finding(asked, "skip", "", "two loads of the entrypoint give other weights, so two exports can't be compared"),
    ]  # fmt: skip
