"""In the file the boxes are turned round and their scores are not: no one order of the selected makes both right."""

import torch


class Model(torch.nn.Module):
    def forward(self, scores, boxes):
        scores = scores + 0.0137 * torch.arange(scores.shape[1])  # none ties
        best, at = scores.topk(6, dim=1, sorted=False)
        box = boxes.gather(1, at[..., None].expand(-1, -1, 4))
        return best, box.flip(1) if torch.compiler.is_exporting() else box


def build():
    return Model().eval()
