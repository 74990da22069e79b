"""Makes networks.npz, plain.safetensors and norms.safetensors: what PyTorch gives for two small networks, so that tests compare with
it where it is not installed. Needs PyTorch, the package and the dab command:   DAB_COMMAND=… python python/tests/reference/make.py"""

from pathlib import Path

import dab_uncertainty as dab
import numpy as np
import torch
from torch import nn

HERE = Path(__file__).resolve().parent


class Block(nn.Module):
    """A block of a transformer's feed-forward part: a residual around norm, two layers and a GELU."""

    def __init__(self):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(8), nn.Linear(8, 16), nn.Linear(16, 8)

    def forward(self, x):
        return x + self.down(nn.functional.gelu(self.up(self.norm(x))))


torch.manual_seed(7)
networks = {
    "plain": nn.Sequential(
        nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.3), nn.Linear(16, 10), nn.ELU(), nn.Linear(10, 8), nn.Tanh(), nn.Linear(8, 4)
    ),
    "norms": nn.Sequential(nn.Linear(6, 8), nn.SiLU(), Block(), nn.LayerNorm(8), nn.Linear(8, 4)),
}  # fmt: skip
familiar = torch.randn(400, 6)
rows = torch.randn(32, 6)
stored = {"familiar": familiar.numpy(), "rows": rows.numpy()}
for name, network in networks.items():
    network.train()
    network(familiar)  # BatchNorm learns its statistics
    network.eval()
    with torch.no_grad():
        stored[name] = network.double()(rows.double()).numpy()
    print(name, dab.export(network, HERE / f"{name}.safetensors", rows=rows.numpy()))
np.savez_compressed(HERE / "networks.npz", **stored)
