"""Two sums of the same terms in two orders: which is larger, rounding tells; and neither is an output."""

import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(257))

    def forward(self, x):
        scores = torch.stack([x @ self.weight, x.flip(-1) @ self.weight.flip(0)], dim=-1)
        return {"best": scores.argmax(-1), "second": scores.topk(2, dim=-1).indices[..., 1], "above": scores > 0.0}


def build():
    torch.manual_seed(0)
    return Model().eval()
