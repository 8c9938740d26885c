"""The catalogue of known causes: what an exporter's exception means in plain words, and what to try."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Cause:
    """A known cause of an export that stops.

    Attributes:
        name: For machines, and for telling whether two exports stop alike.
        pattern: Looked for in the exceptions as ``Type: message`` lines, the root cause first.
        says: Plain words; ``{operator}`` stands for the operator, and a group of the pattern for what it found.
        advice: What to try; the same fields.
        older: What to try with the older exporter, where that differs.
        freezes: Whether the older exporter gets past it only by keeping what the example did.
        whole: Whether `says` holds all that the exception tells.
    """

    name: str
    pattern: re.Pattern[str]
    says: str
    advice: str
    older: str = ""
    freezes: bool = False
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Known:
    """A cause that was found, with its words filled in."""

    name: str
    says: str
    advice: str
    freezes: bool
    whole: bool


def find(text: str, operator: str, exporter: str) -> Known | None:
    """The first cause of the catalogue that these exceptions show."""
    for cause in CATALOGUE:
        match = cause.pattern.search(text)
        if match:
            words = {"operator": operator or "an operator", **{k: v or "" for k, v in match.groupdict().items()}}
            advice = cause.older if cause.older and exporter == "torchscript" else cause.advice
            return Known(cause.name, cause.says.format(**words), advice.format(**words), cause.freezes, cause.whole)
    return None


def _cause(
    name: str, pattern: str, says: str, advice: str, *, older: str = "", freezes: bool = False, whole: bool = False
) -> Cause:
    return Cause(name, re.compile(pattern), says, advice, older, freezes, whole)


_SIZE_ADVICE: Final = (
    "Compute it with whole numbers (//, +, *) or with tensors, or fix that dim and export a variant for each size."
)
_NO_FUNCTION: Final = r"No ONNX function found for <OpOverload\(op='"
_TORCHS_OWN: Final = r"(?:aten|prims|prim|quantized|quantized_decomposed|torchvision|higher_order|_c10d_functional)\b"

CATALOGUE: Final = (
    _cause(
        "size-as-number",
        r"symbolically traced variables cannot be used as inputs to control flow"
        r"|type Tensor doesn't define __(?:round|trunc|floor|ceil)__"
        r"|No ONNX function found for <built-in function \w+>"
        r"|'Sym(?:Int|Float)' object has no attribute",
        "a size that varies was rounded or used as a plain Python number (round, int, float, math, NumPy)",
        _SIZE_ADVICE,
        freezes=True,
    ),
    _cause(
        "data-size",
        r"(?:specialized integer from|guard on) data-dependent expression.*Size-like symbols: [^n)]"
        r"|DynamicOutputShapeException",
        "the size of a result depends on the values of a tensor (nonzero, a boolean mask, unique, a packed sequence), "
        "and what follows needs to know it",
        "Keep the full size and mask it (torch.where), take a fixed number (topk), or move that step behind the model.",
        freezes=True,
    ),
    _cause(
        "data-number",
        r"specialized integer from data-dependent expression",
        "a value of a tensor became a Python number (.item(), int(), float(), tolist()), and what follows needs to "
        "know it",
        "Keep it a tensor throughout forward, or give it to the module as a setting.",
        freezes=True,
    ),
    _cause(
        "data-branch",
        r"GuardOnDataDependentSymNode|Data-dependent branching",
        "a branch (if, while, assert, bool) depends on the values of a tensor",
        "Write it with torch.where or torch.cond; move a check of the inputs out of forward.",
        freezes=True,
    ),
    _cause(
        "no-fake-kernel",
        r"no fake impl",
        "a custom operator does not say what shape its result has",
        "Register a fake implementation for it: @the_operator.register_fake, or torch.library.register_fake.",
    ),
    _cause(
        "custom-operator",
        _NO_FUNCTION + rf"(?!{_TORCHS_OWN})|unrecognized namespace (?!{_TORCHS_OWN})",
        "no ONNX translation exists for the custom operator {operator}",
        "Return a translation from export_kwargs(), custom_translation_table = {{torch.ops.…: function}}, made of "
        "ONNX's operators or of one from a library under custom_ops; or write it with torch's operators in forward.",
        older="Register a translation with torch.onnx.register_custom_op_symbolic, of ONNX's own operators or of one "
        "from a library under custom_ops; or write it with torch's operators in forward.",
        whole=True,
    ),
    _cause(
        "complex",
        r"No decompositions registered for the complex-valued input"
        r"|operator 'aten::(?:complex|view_as_complex|view_as_real|polar|real|imag|angle|_?fft_\w+)' to ONNX"
        r"|ScalarType Complex|[Cc]omplex(?:Float|Double|64|128)",
        "ONNX has no complex numbers, and no form in real ones exists for the operator {operator}",
        "Hold the real and the imaginary part as a last axis of two (torch.view_as_real), and compute with those.",
        whole=True,
    ),
    _cause(
        "quantized",
        r"PackedParams|operator 'quantized::|op='quantized\.",
        "a module of torch's own quantization holds its weights in a packed form, which no exporter reads",
        "Export the module as it was before, and quantize the file (onnxruntime.quantization), or export it with "
        "quantize and dequantize operators (torch.ao.quantization's PT2E).",
    ),
    _cause(
        "sparse",
        r"(?:UnsupportedOperatorException: aten\.|operator 'aten::)_?(?:to_sparse|sparse|nested)\w*",
        "sparse and nested tensors have no form in the exported program",
        "Use plain tensors with padding or masks.",
    ),
    _cause(
        "newer-opset",
        r"Support for this operator was added in version (?P<opset>\d+)",
        "the operator {operator} needs opset {opset}, and a lower one is asked for",
        "Set export.opset = {opset}, if the runtime in production reads it.",
        whole=True,
    ),
    _cause(
        "opset",
        r"Unsupported onnx_opset_version: (?P<opset>\d+)",
        "the exporter does not write opset {opset}",
        "Leave export.opset out, or ask for another one.",
        whole=True,
    ),
    _cause(
        "no-operator",
        _NO_FUNCTION + r"|UnsupportedOperatorError: Exporting the operator",
        "no ONNX translation exists for the operator {operator}",
        "Replace {operator} by operators that ONNX has, or give it a custom_translation_table.",
        older="Replace {operator} by operators that ONNX has, or register one with "
        "torch.onnx.register_custom_op_symbolic.",
        whole=True,
    ),
    _cause(
        "no-form",
        r"Unsupported: ONNX export of operator (?P<use>[^.]+)",
        "the older exporter has no form for this use of an operator: {use}",
        "Call {operator} without that argument, or use the default exporter.",
        whole=True,
    ),
    _cause(
        "output-type",
        r"Found <class '(?:\w+\.)*(?P<type>\w+)'> in output|inputs/outputs\..* unsupported type: (?P<other>\w+)",
        "forward returns an object of class {type}{other}, and the exporter can't look inside it",
        "Return tensors, or dicts, lists and tuples of them, or register the class with "
        "torch.export.register_dataclass.",
        older="Return tensors, or lists and tuples of them.",
    ),
    _cause(
        "numpy",
        r"\.numpy\(\) is not supported|Cannot access data pointer of Tensor",
        "forward hands a tensor to code outside of torch (NumPy, a native library), which can't be captured",
        "Write it with torch's operators, or as a custom operator (torch.library.custom_op) that has a translation.",
        freezes=True,
    ),
    _cause(
        "untraceable",
        r"fake tensor in the exported program constant's list",
        "a tensor was made where the capture does not look (another thread, a callback, a cache outside of the module)",
        "Compute it in forward itself.",
    ),
    _cause(
        "in-place",
        r"directly modify sizes for customized tensor|being used in an in-place operation"
        r"|expected to have an entirely functional graph",
        "a tensor is changed in place in a way that a graph can't express (resize, a parameter, a view of a constant)",
        "Make a new tensor instead; keep state as an input and an output.",
    ),
    _cause(
        "generator",
        r"CustomObjArgument|torch\._C\.Generator",
        "forward passes a torch.Generator, or another object that is no tensor, to an operator",
        "Draw the numbers outside and give them to forward as an input.",
    ),
    _cause(
        "script",
        r"ScriptModule|ScriptFunction|torch\.jit",
        "a part of the module is TorchScript (torch.jit.script or torch.jit.trace)",
        "Export the module it was made from.",
    ),
    _cause(
        "range",
        r"UserError: Constraints violated|ConstraintViolationError|UserError: Expected .*dynamic_shapes"
        r"|UserError: Detected mismatch between the structure|UserError: .*dynamic_shapes",
        "the declared dims contradict the example or the module",
        "Declare the sizes that hold: the message says which.",
    ),
    _cause(
        "caught-error",
        r"(?s)RuntimeError: .*While executing %",
        "an operation of the captured program fails when it is run again: forward catches its error, or it holds at "
        "the example's sizes only",
        "Ask beforehand (if) instead of catching the error, and do without sizes of the example.",
    ),
)
"""In this order: the first that fits is told."""
