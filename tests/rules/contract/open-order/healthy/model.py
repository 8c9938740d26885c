"""The best boxes in no order, of which only the sum is given."""

import torch


class Model(torch.nn.Module):
    def forward(self, scores, boxes):
        scores = scores + 0.0137 * torch.arange(scores.shape[1])  # none ties
        best, at = scores.topk(6, dim=1, sorted=False)
        return (best[..., None] * boxes.gather(1, at[..., None].expand(-1, -1, 4))).sum(1)


def build():
    return Model().eval()
