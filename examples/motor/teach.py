#!/usr/bin/env python3
"""What teaching does: shares of windows above the threshold of 1 %, before and after 1, 10 and 50 windows of the pump.

    examples/motor/simulate.py FOLDER && examples/motor/teach.py FOLDER

FOLDER has train.csv, winding.csv and pump.csv. Needs the package dab_uncertainty (../../python).
"""
import sys
from pathlib import Path

import dab_uncertainty as dab
import numpy as np

SPAWN = 4.0  # as the firmware (src/taught.rs)


def main(folder):
    model = dab.Model(Path(__file__).with_name("model.dab"))
    load = lambda name: np.loadtxt(f"{folder}/{name}.csv", delimiter=",", skiprows=1)[:, :-1]  # noqa: E731
    pump = load("pump")
    sets = {"healthy": load("train")[:1000], "pump, not the taught ones": pump[100:], "open winding": load("winding")}
    threshold = model.threshold(0.01)
    for count in (0, 1, 10, 50):
        memory = dab.Memory(codes=8, dim=model.shape.dim, std=1.0, spawn=SPAWN)
        model.teach(memory, pump[:count])
        shares = {name: (model.assess_taught(memory, rows).uncertainty > threshold).mean() for name, rows in sets.items()}
        print(f"{count:2} taught, {len(memory)} codes: " + ", ".join(f"{name} {share:.1%}" for name, share in shares.items()))


if __name__ == "__main__":
    main(sys.argv[1])
