"""Pictures, and what PyTorch makes of them: the tests of dab-train/tests/pictures.rs compare with it.

    python3 by_pytorch.py       # torch 2.x, torchvision 0.x (CPU), NumPy, Pillow

Writes the pictures into by_pytorch/, the pixels after Resize and CenterCrop into by_pytorch.zlib, and features of a CIFAR
ResNet-8 with weights from a formula into by_pytorch.json. Pictures and weights are formulas of ours.
"""

import json
import math
import zlib
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image
from torch import nn
from torchvision import transforms

MEAN, STD = [0.4914, 0.4822, 0.4465], [0.2470, 0.2435, 0.2616]
SIDE = 32
# Name, width, height, and how the file is written.
PICTURES = [
    ("exact.png", 32, 32, {}),
    ("wide.png", 75, 40, {}),
    ("tall.png", 41, 97, {}),
    ("small.png", 19, 23, {}),
    ("wide.jpg", 75, 40, {"quality": 92, "subsampling": 0}),
    ("halved.jpg", 64, 48, {"quality": 90, "subsampling": 2}),
]
# Shorter sides before the centre is cut out.
RESIZES = [32, 37]


def pixels(width, height, salt):
    """A smooth picture with edges and noise: row x column x colour."""
    y, x = np.mgrid[0:height, 0:width].astype("float64")
    planes = []
    for c in range(3):
        wave = 90 * np.sin(0.21 * (c + 1) * x + 0.13 * y + salt) + 60 * np.cos(0.17 * x - 0.29 * (c + 1) * y)
        edge = 50.0 * ((x + 2 * y + 13 * c) % 31 > 15)
        noise = (x * 7919 + y * 104729 + c * 1299709 + salt * 15485863) % 23
        planes.append(np.clip(110 + wave + edge - 25 + noise - 11, 0, 255))
    return np.stack(planes, axis=-1).round().astype("uint8")


def numbers(name, count):
    """Numbers from -1/2 to 1/2 that depend on a tensor's name alone."""
    seed = 0
    for byte in name.encode():
        seed = (seed * 31 + byte) % 2**32
    x = (np.arange(count, dtype="uint64") * 2654435761 + seed) % 2**32
    x ^= x >> 16
    x = x * 0x45D9F3B % 2**32
    x ^= x >> 16
    return x.astype("float64") / 2**32 - 0.5


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs)
        self.conv2, self.bn2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False), nn.BatchNorm2d(outputs)
        self.more, self.stride = outputs - inputs, stride

    def forward(self, x):
        out = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        if self.more:
            x = F.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, self.more // 2, self.more // 2))
        return F.relu(out + x)


class ResNet8(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16)
        self.layer1 = nn.Sequential(Block(16, 16, 1))
        self.layer2 = nn.Sequential(Block(16, 32, 2))
        self.layer3 = nn.Sequential(Block(32, 64, 2))

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)))
        return self.layer3(self.layer2(self.layer1(x))).mean((2, 3))


def weights(network):
    state = network.state_dict()
    for name, tensor in state.items():
        if name.endswith("num_batches_tracked"):
            continue
        u = numbers(name, tensor.numel())
        if tensor.dim() == 4:
            u = u * math.sqrt(24 / (tensor.shape[1] * 9))
        elif name.endswith("running_var"):
            u = 1 + u / 2
        elif name.endswith("weight"):
            u = 1 + u / 5
        else:
            u = u / 5
        state[name] = torch.tensor(u.astype("float32")).reshape(tensor.shape)
    network.load_state_dict(state)


here = Path(__file__).resolve().parent
(here / "by_pytorch").mkdir(exist_ok=True)
network = ResNet8().eval()
weights(network)
crops, cases = [], []
for salt, (name, width, height, options) in enumerate(PICTURES):
    path = here / "by_pytorch" / name
    if not path.exists():
        Image.fromarray(pixels(width, height, salt)).save(path, optimize=True, **options)
    for resize in RESIZES:
        picture = Image.open(path).convert("RGB")
        cut = transforms.Compose([transforms.Resize(resize), transforms.CenterCrop(SIDE)])(picture)
        crops.append(np.asarray(cut).transpose(2, 0, 1).tobytes())
        seen = transforms.Compose([transforms.ToTensor(), transforms.Normalize(MEAN, STD)])(cut)
        with torch.no_grad():
            features = network(seen[None])[0]
        cases.append({
            "file": name,
            "resize": resize,
            "numbers": [float(x) for x in seen.flatten()[::311]],
            "features": [float(x) for x in features],
        })
(here / "by_pytorch.zlib").write_bytes(zlib.compress(b"".join(crops), 9))
stored = {"side": SIDE, "mean": MEAN, "std": STD, "every": 311, "torch": torch.__version__, "cases": cases}
(here / "by_pytorch.json").write_text(json.dumps(stored) + "\n")
