"""The export leaves the module in eval mode."""

import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(6, 5)
        self.dropout = torch.nn.Dropout(0.5)
        self.second = torch.nn.Linear(5, 4)

    def forward(self, x):
        return self.second(self.dropout(self.first(x)).relu())


def make_model():
    torch.manual_seed(0)
    return Model().eval()


def make_inputs():
    generator = torch.Generator().manual_seed(1)
    return [("example", {"x": torch.rand(3, 6, generator=generator)})]


def export_kwargs():
    return {"dynamo": False, "training": torch.onnx.TrainingMode.PRESERVE}
