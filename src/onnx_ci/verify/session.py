"""Opens ONNX Runtime on a target and runs a case: the one place that knows its options, errors and newer calls.

ONNX Runtime's exceptions have no common base, so they are told apart here by module and class name.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import onnxruntime

from onnx_ci.artifact.tensors import Value
from onnx_ci.records.model import TargetSpec
from onnx_ci.runtime.options import configure, level, provider
from onnx_ci.runtime.placement import PlacedNode, recorded
from onnx_ci.verify import bfloat16

RUNTIME_VERSION: str = onnxruntime.__version__
Level = Literal["disabled", "basic", "extended", "all"]
LEVELS: tuple[Level, ...] = get_args(Level)
"""How far ONNX Runtime optimizes a graph; "all" is what it does unless told otherwise."""
_FORBID_CPU = "session.disable_cpu_ep_fallback"
_DEVICES = {"CUDAExecutionProvider": "cuda", "TensorrtExecutionProvider": "cuda", "DmlExecutionProvider": "dml"}
"""Where inputs and outputs are bound; a provider that is not named takes them from the host."""
_DATA_FOLDER = "session.model_external_initializers_file_folder_path"
_QUIET = 4  # fatal only: what ONNX Runtime would print comes back as an exception anyway
FaultKind = Literal[
    "no-kernel", "no-operator", "not-a-model", "bad-graph", "bad-feed", "file", "memory", "device", "library", "crash"
]


class RuntimeFault(Exception):
    """ONNX Runtime refused to open a file or to run it.

    Attributes:
        kind: "no-kernel": the operator exists, the provider has no implementation for these types; "no-operator":
            nobody knows it; "bad-feed": the inputs given do not fit; "memory": it could not get enough of it;
            "device": the provider, its options or its device; "library": a library of custom operators.
        message: What it said, without codes and build paths.
        operator: "Gemm(13)", "my.ops:Foo(1)": of the node it names; empty where it names none. Likewise `node`.
    """

    def __init__(self, kind: FaultKind, message: str, operator: str = "", node: str = "") -> None:
        super().__init__(message)
        self.kind, self.message, self.operator, self.node = kind, message, operator, node


class Session:
    """An open session; values go in and come out by name, as `artifact.tensors` reads them."""

    def __init__(self, handle: Any, *, asked: str) -> None:
        self._handle = handle
        self.asked = asked
        self.inputs: list[str] = [item.name for item in handle.get_inputs()]
        self.outputs: list[str] = [item.name for item in handle.get_outputs()]
        self.active: list[str] = list(handle.get_providers())
        types = [item.type for item in [*handle.get_inputs(), *handle.get_outputs()]]
        self._has_bfloat16 = "tensor(bfloat16)" in types
        self._maps = {item.name: _map_dtype(item.type) for item in handle.get_outputs() if "map(" in item.type}

    def runner(self, feeds: Mapping[str, Value]) -> Callable[[], object]:
        """One run with these inputs as a call with nothing around it, for a clock; copies to a device are inside."""
        if self._has_bfloat16:
            return lambda: self.run(feeds)
        handle, outputs, ready = self._handle, self.outputs, dict(feeds)
        return lambda: handle.run(outputs, ready)

    def bound_runner(self, feeds: Mapping[str, Value]) -> Callable[[], object] | None:
        """The same with inputs and outputs left on the device, synchronized at its end; None where they can't be
        bound: strings, sequences, bfloat16.
        """
        arrays = {name: value for name, value in feeds.items() if isinstance(value, np.ndarray)}
        if self._has_bfloat16 or len(arrays) < len(feeds) or any(one.dtype.kind in "OUS" for one in arrays.values()):
            return None
        handle, device = self._handle, _DEVICES.get(self.asked, "cpu")
        # On the CPU a bound value is the array's own memory, so both live as long as the call. A lone number keeps its
        # rank, which ascontiguousarray takes.
        held = {name: np.ascontiguousarray(array).reshape(array.shape) for name, array in arrays.items()}
        try:
            binding = handle.io_binding()
            for name, array in held.items():
                binding.bind_ortvalue_input(name, onnxruntime.OrtValue.ortvalue_from_numpy(array, device, 0))
            for name in self.outputs:
                binding.bind_output(name, device)
            handle.run_with_iobinding(binding)
        except Exception as error:
            raise classify(error) from error

        def run(_held: object = held) -> None:
            handle.run_with_iobinding(binding)
            binding.synchronize_outputs()

        return run

    def close(self) -> None:
        """Lets go of the runtime's copy of the weights; nothing works afterwards."""
        self._handle = None

    def run(self, feeds: Mapping[str, Value]) -> dict[str, Value]:
        """Runs it once.

        Raises:
            RuntimeFault: It does not take these inputs, or an operator fails at them.
        """
        options = onnxruntime.RunOptions()
        options.log_severity_level = _QUIET
        try:
            if self._has_bfloat16:
                values = bfloat16.run(self._handle, self.outputs, feeds, options)
            else:
                values = self._handle.run(self.outputs, dict(feeds), options)
        except Exception as error:
            raise classify(error) from error
        named = dict(zip(self.outputs, values, strict=True))
        return named | {name: _with_arrays(named[name], dtype) for name, dtype in self._maps.items()}

    def placement(self) -> list[PlacedNode] | None:
        """Each node's provider; None where this ONNX Runtime does not tell."""
        return recorded(self._handle)

    def provider_options(self) -> dict[str, str]:
        """The options that the asked provider really has, defaults included."""
        found: dict[str, dict[str, str]] = self._handle.get_provider_options()
        return dict(found.get(self.asked, {}))

    def end_profiling(self) -> Path:
        """Closes the profile and says where it lies."""
        return Path(self._handle.end_profiling())


def _map_dtype(kind: str) -> np.dtype[Any]:
    """The dtype of a map's values, by ONNX Runtime's words for it: "seq(map(int64,tensor(float)))"."""
    word = kind.rpartition("tensor(")[2].rstrip(")")
    return np.dtype({"float": "float32", "double": "float64", "string": "object"}.get(word, word))


def _with_arrays(value: Any, dtype: np.dtype[Any]) -> Any:
    """Maps come with Python's numbers; here they have their dtype again."""
    if isinstance(value, list):
        return [_with_arrays(item, dtype) for item in value]
    return {key: np.array(item, dtype) for key, item in value.items()} if isinstance(value, dict) else value


def available_providers() -> list[str]:
    """What the installed build holds; whether its libraries load shows only in a session."""
    return list(onnxruntime.get_available_providers())


def known_providers() -> list[str]:
    """Every provider name that this version knows, installed or not."""
    return list(onnxruntime.get_all_providers())


def open_session(
    model: Path | bytes,
    target: TargetSpec,
    *,
    custom_ops: Sequence[Path] = (),
    optimized: bool | Level = True,
    profile: Path | None = None,
    data: Path | None = None,
    forbid_cpu: bool = False,
) -> Session:
    """Opens a file on a target. That the provider is active afterwards is for the caller to check.

    Args:
        model: Absolute path, since ONNX Runtime resolves external data against it; or a changed copy as bytes.
        target: The provider, its options and its threads.
        custom_ops: Libraries of operators to register.
        optimized: False leaves the graph as it is in the file; a level by its name goes that far; True as far as the
            target says.
        profile: Start of the path of a profile to write.
        data: Of a model that is given as bytes, the folder of the data beside it.
        forbid_cpu: Whether it is a fault that the runtime would leave a node to the CPU; not for the CPU's provider.

    Raises:
        RuntimeFault: It can't be opened.
    """
    options = onnxruntime.SessionOptions()
    options.log_severity_level = _QUIET
    options.inter_op_num_threads = 1
    configure(options, target)
    if optimized is not True:
        options.graph_optimization_level = level(optimized or "disabled")
    if profile is not None:
        options.enable_profiling = True
        options.profile_file_prefix = str(profile)
    if data is not None:
        options.add_session_config_entry(_DATA_FOLDER, str(data))
    if forbid_cpu:
        options.add_session_config_entry(_FORBID_CPU, "1")
    if "CUDA" in target.provider or "Tensorrt" in target.provider:
        _load_device_libraries()
    for library in custom_ops:
        try:
            options.register_custom_ops_library(str(library))
        except Exception as error:
            raise RuntimeFault("library", f"{library.name}: {plain_message(str(error))}") from error
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # a provider that is not there: judged by what is active
            # Without enable_fallback=0 a provider that fails is replaced by the CPU, with a banner on stdout.
            source = model if isinstance(model, bytes) else str(model)
            handle = onnxruntime.InferenceSession(source, options, providers=[provider(target)], enable_fallback=0)
    except Exception as error:
        raise classify(error) from error
    return Session(handle, asked=target.provider)


def _load_device_libraries() -> None:
    """CUDA and cuDNN from NVIDIA's own wheels: without torch in the process nobody else loads them."""
    preload = getattr(onnxruntime, "preload_dlls", None)
    if preload is not None:
        preload(directory="")


_CODE = re.compile(r"^\[ONNXRuntimeError\] : \d+ : [A-Z_]+ : ")
_BUILD_PATH = re.compile(r"/(?:[\w.+-]+/)*onnxruntime/(?:[\w.+-]+/)*[\w.+-]+\.(?:cc|h|cpp|cuh?):\d+ ?")
_LOADED = re.compile(r"Load model from .*? failed: ?")
_NO_KERNEL = re.compile(r"Could not find an implementation for (\S+?) node with name '(.*?)'")
_NO_OPERATOR = re.compile(r"(\S+?):(\S+?)\((-?\d+)\) is not a registered function/op")
_RUNNING = re.compile(r"while running (\S+) node\. Name:'(.*?)'")
_DEVICE = re.compile(
    r"provider option|Unknown Provider Type|(?:CUDA|cuDNN|CUDNN|cuBLAS|HIP|TensorRT) (?:failure|error|driver)|"
    r"onnxruntime_providers_\w+\.(?:so|dll)|no CUDA-capable device|Failed to load library",
    re.IGNORECASE,
)
_MEMORY = ("bad_alloc", "bad allocation", "Failed to allocate memory", "out of memory", "CUDA failure 2")
_BY_CLASS: dict[str, FaultKind] = {
    "NotImplemented": "no-kernel",
    "InvalidProtobuf": "not-a-model",
    "NoModel": "not-a-model",
    "InvalidGraph": "bad-graph",
    "InvalidArgument": "bad-feed",
    "NoSuchFile": "file",
}


def classify(error: Exception) -> RuntimeFault:
    """Says of any exception of ONNX Runtime what kind of fault it is; what is not known is a crash."""
    message = plain_message(str(error))
    if isinstance(error, MemoryError) or any(word in message for word in _MEMORY):
        return RuntimeFault("memory", message)
    if _DEVICE.search(message):
        return RuntimeFault("device", message)
    no_kernel, no_operator = _NO_KERNEL.search(message), _NO_OPERATOR.search(message)
    if no_kernel:
        return RuntimeFault("no-kernel", message, no_kernel[1], no_kernel[2])
    if no_operator:
        domain, name, version = no_operator.groups()
        return RuntimeFault("no-operator", message, f"{domain}:{name}" + (f"({version})" if version != "-1" else ""))
    running = _RUNNING.search(message)
    if running:
        return RuntimeFault("crash", message, running[1], running[2])
    of_runtime = type(error).__module__.startswith("onnxruntime")
    if isinstance(error, ValueError) and "missing from input feed" in message:
        return RuntimeFault("bad-feed", message)
    return RuntimeFault(_BY_CLASS.get(type(error).__name__, "crash") if of_runtime else "crash", message)


def plain_message(text: str) -> str:
    """What ONNX Runtime said, without its codes and the paths of its build, in one line of bounded length."""
    text = _BUILD_PATH.sub("", _LOADED.sub("", _CODE.sub("", text)))
    return " ".join(text.split())[:1000]
