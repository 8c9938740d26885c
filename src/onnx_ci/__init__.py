"""onnx-ci: the migration of a PyTorch module to ONNX, proved on every pull request."""

__version__ = "1.0.0.dev0"
