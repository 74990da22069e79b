"""The loop of dab-train/src/learn/epoch.rs in PyTorch on the CPU, for benches/training.rs.

Reads the work (JSON, first argument), prints one line of JSON: seconds of each half of an epoch at its fastest.
Written as one would write it in PyTorch: torch.nn and torch.optim, batched torch.linalg.eigh with a Daleckii-Krein
backward, distances to many codes as matrix products, encodings cached for the codebook's steps.
"""

import json
import math
import resource
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

WARM_UP = 2
HALVES = ["network", "codebook"]
SHIFT, FLOOR, TIE = 5.0, 1e-5, 1e-3

work = json.loads(sys.argv[1])
torch.set_num_threads(work["threads"])
torch.manual_seed(0)
experiment = work["experiment"]
bottleneck, objective, codebook = experiment["bottleneck"], experiment["objective"], experiment["codebook"]
rows, classes, batch = work["rows"], work["classes"], experiment["training"]["batch"]
dim, count, alpha = bottleneck["dim"], bottleneck["codes"], objective["alpha"]
diagonal = bottleneck["covariance"] == "diagonal"
pictures = experiment["backbone"].get("images")


class Clock:
    def __init__(self):
        self.spent, self.last = dict.fromkeys(HALVES, 0.0), time.perf_counter()

    def lap(self, half):
        now = time.perf_counter()
        self.spent[half] += now - self.last
        self.last = now


class SpectralRoot(torch.autograd.Function):
    """A -> f(A) and ln|f(A)^2|, f(x) = softplus(|x| - 5) + 1e-5."""

    @staticmethod
    def forward(ctx, a):
        values, vectors = torch.linalg.eigh(a)
        std = F.softplus(values.abs() - SHIFT) + FLOOR
        ctx.save_for_backward(values, vectors, std)
        root = (vectors * std.unsqueeze(1)) @ vectors.mT
        return root, 2.0 * std.log().sum(1, keepdim=True)

    @staticmethod
    def backward(ctx, root_grad, log_det_grad):
        values, vectors, std = ctx.saved_tensors
        slope = lambda x: x.sign() * torch.sigmoid(x.abs() - SHIFT)
        row, column = values.unsqueeze(2), values.unsqueeze(1)
        run = row - column
        tied = run.abs() <= TIE * (row.abs() + column.abs() + 1.0)
        rise = std.unsqueeze(2) - std.unsqueeze(1)
        phi = torch.where(tied, slope(0.5 * (row + column)), rise / run.masked_fill(tied, 1.0))
        inner = phi * (vectors.mT @ root_grad @ vectors)
        inner = inner + torch.diag_embed(log_det_grad * 2.0 * slope(values) / std)
        return vectors @ inner @ vectors.mT


class WideBlock(nn.Module):
    """x + conv relu norm conv relu norm x; a 1x1 kernel on the shortcut where the shape changes."""

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.norm1, self.norm2 = nn.BatchNorm2d(inputs), nn.BatchNorm2d(outputs)
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        changes = stride > 1 or inputs != outputs
        self.shortcut = nn.Conv2d(inputs, outputs, 1, stride, bias=False) if changes else nn.Identity()

    def forward(self, x):
        y = self.conv1(F.relu(self.norm1(x)))
        return self.shortcut(x) + self.conv2(F.relu(self.norm2(y)))


def wide_resnet(depth, width):
    """dab-train/src/model/resnet.rs: pixels to pooled features."""
    layers, inputs = [nn.Conv2d(3, 16, 3, 1, 1, bias=False)], 16
    for stage, channels in enumerate((16 * width, 32 * width, 64 * width)):
        for index in range((depth - 4) // 6):
            layers.append(WideBlock(inputs, channels, 2 if stage and not index else 1))
            inputs = channels
    return nn.Sequential(*layers, nn.BatchNorm2d(inputs), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()), inputs


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        width, layers = work["inputs"], experiment["backbone"].get("layers", [])
        self.images = None
        if pictures:
            self.images, width = wide_resnet(pictures["network"]["depth"], pictures["network"]["width"])
        self.layers = nn.ModuleList()
        for layer in layers:
            self.layers.append(nn.Linear(width, layer["units"]))
            width = layer["units"]
        self.residual = [layer.get("residual") for layer in layers]
        outputs = 2 * dim if diagonal else dim + dim * (dim + 1) // 2
        self.head = nn.Linear(width, outputs, bias=bottleneck["head_bias"])
        self.decoder = nn.Linear(dim, classes or 1)
        self.log_variance = nn.Parameter(torch.zeros(1)) if not classes else None
        lower = torch.tril_indices(dim, dim)
        full = torch.zeros(dim, dim, dtype=torch.long)
        full[lower[0], lower[1]] = torch.arange(lower.shape[1])
        full = torch.maximum(full, full.T).flatten()
        self.register_buffer("cells", full)
        self.register_buffer("scale", torch.full((dim, dim), 0.5).fill_diagonal_(1.0).flatten())

    def encode(self, x):
        """mean [n, d]; root: standard deviations [n, d] or S [n, d, d]; ln|cov| [n, 1]."""
        outputs = [x if self.images is None else self.images(x)]
        for layer, residual in zip(self.layers, self.residual):
            y = F.relu(layer(outputs[-1]))
            outputs.append(y if residual is None else y + outputs[residual])
        h = F.relu(outputs[-1]) if bottleneck["activation"] == "relu" else outputs[-1]
        mean, raw = self.head(h).split([dim, self.head.out_features - dim], 1)
        if diagonal:
            std = F.softplus(raw - SHIFT) + FLOOR
            return mean, std, 2.0 * std.log().sum(1, keepdim=True)
        a = (raw[:, self.cells] * self.scale).view(-1, dim, dim)
        return (mean, *SpectralRoot.apply(a))


def cov_of(root):
    return root.square() if diagonal else (root @ root.mT).flatten(1)


def kl(encoding, means, precision, log_det):
    mean, root, own_log_det = encoding
    cov = cov_of(root)
    if diagonal:
        centre = means.detach().mean(0)
        mean, own = mean - centre, means - centre
        weighted = own * precision
        square = (cov + mean.square()) @ precision.T - 2.0 * mean @ weighted.T + (own * weighted).sum(1)
    else:
        offset = mean.unsqueeze(0) - means.unsqueeze(1)
        square = cov @ precision.flatten(1).T + ((offset @ precision) * offset).sum(2).T
    return 0.5 * (square + log_det - own_log_det - dim)


def assign(distances, log_prior):
    return torch.softmax(log_prior - alpha * distances.detach(), 1)


inputs = torch.randn(rows, 3, 32, 32) if pictures else torch.randn(rows, work["inputs"])
targets = torch.arange(rows) % classes if classes else torch.randn(rows, 1)
network = Network()
config = experiment["optimiser"]
if config["rule"] == "adam":
    optimiser = torch.optim.Adam(network.parameters(), lr=config["learning_rate"], eps=1e-7)
else:
    optimiser = torch.optim.SGD(network.parameters(), lr=config["learning_rate"], momentum=0.9, nesterov=True,
                                weight_decay=config.get("weight_decay", 0.0))
means = nn.Parameter(0.1 * torch.randn(count, dim))
means_optimiser = torch.optim.Adam([means], lr=codebook["mean_learning_rate"], eps=1e-7)
covs = torch.ones(count, dim) if diagonal else torch.eye(dim).repeat(count, 1, 1)
priors = torch.full((count,), 1.0 / count)


def codes():
    if diagonal:
        return covs.reciprocal(), covs.log().sum(1), priors.log()
    factor = torch.linalg.cholesky(covs)
    return torch.cholesky_inverse(factor), 2.0 * factor.diagonal(dim1=1, dim2=2).log().sum(1), priors.log()


def epoch():
    global covs, priors
    clock = Clock()
    # Step 1: the network by gradient.
    precision, log_det, log_prior = codes()
    fixed = means.detach()
    sums = torch.zeros(2)
    for index in torch.randperm(rows).split(batch):
        x, wanted = inputs[index], targets[index]
        encoding = network.encode(x)
        mean, root, _ = encoding
        noise = torch.randn(len(index), dim)
        z = mean + (root * noise if diagonal else (root @ noise.unsqueeze(2)).squeeze(2))
        outputs = network.decoder(z)
        distances = kl(encoding, fixed, precision, log_det)
        u = (assign(distances, log_prior) * distances).sum(1)
        if classes:
            nll = F.cross_entropy(outputs, wanted)
        else:
            log_variance = network.log_variance.clamp(-12.0, 12.0)
            nll = 0.5 * ((outputs - wanted).square() * torch.exp(-log_variance) + log_variance).mean()
        distortion = u.mean()
        loss = nll + alpha * objective["beta"] * distortion
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        clock.lap("network")
        sums += torch.stack([nll.detach(), distortion.detach()]) * (len(index) / rows)
    report = sums.tolist()
    # Step 2: every example's Gaussian, once, with the running statistics of the norms.
    network.eval()
    with torch.no_grad():
        encodings = [network.encode(x) for x in inputs.split(batch)]
    network.train()
    # Step 3: means by gradient.
    for encoding in encodings:
        distances = kl(encoding, means, precision, log_det)
        assignment = assign(distances, log_prior)
        means_optimiser.zero_grad()
        (assignment * distances).sum(1).mean().backward()
        means_optimiser.step()
    # Steps 3 and 4: covariances and priors, as sums over the pass.
    with torch.no_grad():
        weight_sum, cov_sum, prior_sum, entropy, us = 0.0, 0.0, 0.0, 0.0, []
        for encoding in encodings:
            mean, root, _ = encoding
            distances = kl(encoding, means, precision, log_det)
            assignment = assign(distances, log_prior)
            weights = assignment + codebook["pseudo_count"]
            inner = weights.T @ cov_of(root)
            if diagonal:
                # Sum w (mean - m)^2 as matrix products.
                total = weights.sum(0).unsqueeze(1)
                outer = weights.T @ mean.square() - 2.0 * means * (weights.T @ mean) + total * means.square()
            else:
                offset = mean.unsqueeze(0) - means.unsqueeze(1)
                outer = ((offset * weights.T.unsqueeze(2)).mT @ offset).flatten(1)
            weight_sum, cov_sum = weight_sum + weights.sum(0), cov_sum + inner + outer
            prior_sum = prior_sum + assignment.sum(0)
            entropy += torch.xlogy(assignment, assignment).sum().item()
            us.extend((assignment * distances).sum(1).tolist())
        covs = cov_sum / weight_sum.unsqueeze(1)
        if diagonal:
            covs = covs + 1e-10 + codebook["ridge"] * covs.mean(1, keepdim=True)
        else:
            covs = covs.view(count, dim, dim)
            ridge = 1e-10 + codebook["ridge"] * covs.diagonal(dim1=1, dim2=2).mean(1)
            covs = covs + ridge.view(-1, 1, 1) * torch.eye(dim)
        priors = (prior_sum / rows).clamp_min(codebook["prior_floor"] / count)
        priors = priors / priors.sum()
    clock.lap("codebook")
    return clock.spent, report[0]


for _ in range(WARM_UP):
    epoch()
best, cpu = dict.fromkeys(HALVES, math.inf), time.process_time()
for _ in range(work["epochs"]):
    spent, nll = epoch()
    best = {half: min(best[half], spent[half]) for half in HALVES}
if not math.isfinite(nll):
    sys.exit("the loss is not finite")
cpu = (time.process_time() - cpu) / work["epochs"]
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
print(json.dumps(dict(best, cpu_seconds=cpu, peak_bytes=peak)))
