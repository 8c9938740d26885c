"""The best boxes in whatever order: PyTorch's is another than the file's, with the same scores."""

import torch


class Model(torch.nn.Module):
    def forward(self, scores, boxes):
        scores = scores + 0.0137 * torch.arange(scores.shape[1])  # none ties
        best, at = scores.topk(6, dim=1, sorted=False)
        return best, at, boxes.gather(1, at[..., None].expand(-1, -1, 4)).mul(2)


def build():
    return Model().eval()
