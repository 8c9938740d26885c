"""The twin: a shipped ONNX file run in float64, node by node, with numpy and ONNX Runtime only.

Every float of the file (float16, bfloat16, float32) is a float64 here, so what is left beside the oracle says whether
the graph is the same function, not how well a provider rounds.
"""

from __future__ import annotations

from onnx_ci.twin.amplify import amplification as amplification
from onnx_ci.twin.amplify import draws as draws
from onnx_ci.twin.amplify import jumps as jumps
from onnx_ci.twin.amplify import measured as measured
from onnx_ci.twin.amplify import run_with_amplification as run_with_amplification
from onnx_ci.twin.model import Twin as Twin
from onnx_ci.twin.model import TwinRun as TwinRun
from onnx_ci.twin.registry import Unoracled as Unoracled
