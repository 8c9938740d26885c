import os

import torch

# What runs here may be a stranger's: nothing that could write to the repository may be in reach.
seen = [name for name, value in os.environ.items() if "ghs_" in value or name in ("GITHUB_TOKEN", "GITHUB_OUTPUT")]
if seen:
    raise RuntimeError(f"user code sees {seen}")


def make_model():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2)).eval()


def make_inputs():
    return [("one", {"input": torch.linspace(-1, 1, 6).reshape(2, 3)})]


def export_kwargs():
    return {"dynamic_shapes": {"input": {0: torch.export.Dim("batch")}}, "input_names": ["x"], "output_names": ["y"]}
