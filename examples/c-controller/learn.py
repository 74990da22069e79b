"""Learns the policy of the example from calm driving, and writes weights.safetensors for `dab pack`.

An expert (LQR) balances the pole from small disturbances; a network of one tanh layer imitates its force. Beside it
the layer passes the state on, almost linearly (tanh of a fiftieth of it), so that the latent space is
(state, force): codes are clusters of where the expert has been.
"""

import json

import numpy as np

rng = np.random.default_rng(5)
DT, GRAVITY, CART, POLE, HALF = 0.001, 9.81, 1.0, 0.1, 0.5
HIDDEN, PASS, LATENT_STD, CODES = 24, 0.02, 0.3, 12


def step(s, force):
    """One millisecond of cart and pole: the equations of main.c."""
    x, v, a, w = s.T
    total = CART + POLE
    push = (force + POLE * HALF * w * w * np.sin(a)) / total
    spin = (GRAVITY * np.sin(a) - np.cos(a) * push) / (HALF * (4 / 3 - POLE * np.cos(a) ** 2 / total))
    acceleration = push - POLE * HALF * spin * np.cos(a) / total
    v, w = v + DT * acceleration, w + DT * spin
    return np.stack([x + DT * v, v, a + DT * w, w], 1)


def lqr(q, r):
    """Gain of the linearised plant, by iterating its Riccati equation."""
    eps, zero = 1e-5, np.zeros((1, 4))
    a = np.stack([(step(zero + eps * e, 0.0) - step(zero, 0.0))[0] / eps for e in np.eye(4)], 1)
    b = (step(zero, eps) - step(zero, 0.0)).T / eps
    p = np.diag(q)
    for _ in range(20000):
        k = np.linalg.solve(r + b.T @ p @ b, b.T @ p @ a)
        p = np.diag(q) + a.T @ p @ (a - b @ k)
    return k[0]


def clusters(z):
    """k-means, 50 rounds."""
    centres = z[rng.choice(len(z), CODES, replace=False)]
    for _ in range(50):
        own = ((z[:, None] - centres) ** 2).sum(2).argmin(1)
        centres = np.stack([z[own == k].mean(0) if (own == k).any() else centres[k] for k in range(CODES)])
    return centres, own


gain = lqr([1.0, 1.0, 10.0, 1.0], 0.5)
states, s = [], rng.normal(size=(200, 4)) * [0.1, 0.1, 0.04, 0.1]
for t in range(6000):
    if t % 1500 == 0:
        s = s + rng.normal(size=s.shape) * [0.03, 0.08, 0.02, 0.08]
    s = step(s, -s @ gain)
    if t % 20 == 0 and t % 1500 < 600:
        states.append(s)
states = np.concatenate(states)
forces = -states @ gain
order = rng.permutation(len(states))
train, held_out = order[: len(order) * 3 // 4], order[len(order) * 3 // 4 :]

mean, std = states[train].mean(0), states[train].std(0)
x = (states - mean) / std
weight = np.concatenate([rng.normal(size=(HIDDEN, 4)) * 0.15, PASS * np.eye(4)])
bias = np.concatenate([rng.normal(size=HIDDEN) * 0.8, np.zeros(4)])
h = np.tanh(x @ weight.T + bias)
scale = forces[train].std()
design = np.c_[h[:, :HIDDEN], np.ones(len(h))]
out = np.linalg.solve(design[train].T @ design[train] + 1e-6 * np.eye(HIDDEN + 1), design[train].T @ forces[train] / scale)
error = design[held_out] @ out - forces[held_out] / scale
print(f"policy: error {error.std():.4f} of the force's deviation {scale:.3f} N, largest force {abs(forces).max():.2f} N")

latent = 5
raw_std = np.log(np.expm1(LATENT_STD)) + 5
head = np.zeros((2 * latent, HIDDEN + 4))
head[:4, HIDDEN:] = np.eye(4) / PASS
head[4, :HIDDEN] = out[:HIDDEN]
head_bias = np.concatenate([np.zeros(4), out[HIDDEN:], np.full(latent, raw_std)])
z = h @ head[:latent].T + head_bias[:latent]
means, own = clusters(z[train])
covs = np.stack([z[train][own == k].var(0) + LATENT_STD**2 for k in range(CODES)])
priors = np.bincount(own, minlength=CODES) / len(own)

# The uncertainty of held-out states, as method.md has it: for the calibration table.
d = z[held_out][:, None] - means
kl = 0.5 * (LATENT_STD**2 / covs + d * d / covs - 1 + np.log(covs) - np.log(LATENT_STD**2)).sum(2)
share = priors * np.exp(-(kl - kl.min(1, keepdims=True)))
scores = (share * kl).sum(1) / share.sum(1)

tensors = {
    "normalize.mean": mean, "normalize.std": std,
    "layers.0.weight": weight, "layers.0.bias": bias,
    "head.weight": head, "head.bias": head_bias,
    "codes.mean": means, "codes.cov": covs, "codes.prior": priors,
    "decoder.weight": scale * np.eye(latent)[4:], "decoder.bias": np.zeros(1),
    "calibration.scores": scores,
}  # fmt: skip
metadata = {
    "covariance": "diagonal", "alpha": "1", "task": "regression", "layers.0.activation": "tanh",
    "input_names": "position_m,velocity_m_s,angle_rad,rate_rad_s", "output_names": "force_n",
}  # fmt: skip
header, data = {"__metadata__": metadata}, b""
for name, values in tensors.items():
    values = np.asarray(values, "<f8")
    header[name] = {"dtype": "F64", "shape": list(values.shape), "data_offsets": [len(data), len(data) + values.nbytes]}
    data += values.tobytes()
text = json.dumps(header).encode()
with open("weights.safetensors", "wb") as file:
    file.write(len(text).to_bytes(8, "little") + text + data)
