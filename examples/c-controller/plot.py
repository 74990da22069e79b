"""timeline.csv -> timeline.png: python3 plot.py (needs matplotlib)."""

import csv

import matplotlib.pyplot as plt

rows = list(csv.DictReader(open("timeline.csv")))
time = [float(row["seconds"]) for row in rows]
safe = [row["driver"] != "policy" for row in rows]
figure, (top, bottom) = plt.subplots(2, 1, sharex=True, figsize=(8, 4.5), layout="constrained")
top.plot(time, [float(row["angle_rad"]) for row in rows])
top.set_ylabel("angle, rad")
bottom.semilogy(time, [float(row["uncertainty_nats"]) for row in rows])
bottom.set_ylabel("uncertainty, nats")
bottom.set_xlabel("seconds; shaded: the safe controller drives")
for axis in (top, bottom):
    axis.fill_between(time, 0, 1, where=safe, transform=axis.get_xaxis_transform(), alpha=0.2)
figure.savefig("timeline.png", dpi=120)
