"""The best boxes, best first, and their scores."""

import torch


class Model(torch.nn.Module):
    def forward(self, scores, boxes):
        scores = scores + 0.0137 * torch.arange(scores.shape[1])  # none ties
        best, at = scores.topk(6, dim=1, sorted=True)
        box = boxes.gather(1, at[..., None].expand(-1, -1, 4))
        return best, box


def build():
    return Model().eval()
