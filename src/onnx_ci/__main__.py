"""``python -m onnx_ci``: the command line."""

from onnx_ci.cli import main

if __name__ == "__main__":
    main()
