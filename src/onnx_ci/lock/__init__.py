"""Lock files: the versions that they fix, and how what is installed differs from them."""

from onnx_ci.lock.compare import compare
from onnx_ci.lock.installed import check_environment
from onnx_ci.lock.read import read

__all__ = ["check_environment", "compare", "read"]
