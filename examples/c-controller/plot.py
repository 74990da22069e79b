"""timeline.csv and unwatched.csv -> timeline.svg: python3 plot.py [OUTPUT.svg] (needs nothing but Python).

    ./controller; ./controller --unwatched; python3 plot.py

From top to bottom: the pole's angle with and without the monitor; the uncertainty with the two thresholds of the
monitor; who drives. The gust is shaded.
"""

import csv
import math
import sys

WIDTH, LEFT, RIGHT = 760, 78, 18
BLUE, ORANGE, GREEN, INK, MUTED, GRID = "#0072b2", "#d55e00", "#009e73", "#222", "#666", "#e4e4e4"
GUST, SAFE = "#cc79a7", "#e69f00"
svg = []


def read(path):
    """Rows of the file, numbers as numbers."""
    with open(path) as file:
        return [{k: v if k == "driver" else float(v) for k, v in row.items()} for row in csv.DictReader(file)]


def text(x, y, words, color=INK, size=13, anchor="start", more=""):
    words = words.replace("&", "&amp;").replace("<", "&lt;")
    svg.append(f'<text x="{x:.1f}" y="{y:.1f}" fill="{color}" font-size="{size}" text-anchor="{anchor}" {more}>{words}</text>')


def box(x0, y0, x1, y1, color, opacity):
    svg.append(f'<rect x="{x0:.1f}" y="{y0:.1f}" width="{x1 - x0:.1f}" height="{y1 - y0:.1f}" fill="{color}"'
               f' fill-opacity="{opacity}"/>')


def line(points, color, width=1.0, dash=""):
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    svg.append(f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="{width}" stroke-dasharray="{dash}"'
               ' stroke-linejoin="round"/>')


watched, alone = read("timeline.csv"), read("unwatched.csv")
end = round(watched[-1]["seconds"])
gust = [row["seconds"] for row in watched if row["gust_nm"] > 0.0]
gust = gust[0], next(row["seconds"] for row in watched if row["seconds"] > gust[-1])
# Intervals with the same driver: (driver, from, to).
drivers = []
for row in watched:
    if not drivers or drivers[-1][0] != row["driver"]:
        drivers.append([row["driver"], row["seconds"], end])
        if len(drivers) > 1:
            drivers[-2][2] = row["seconds"]


def across(seconds):
    return LEFT + (WIDTH - LEFT - RIGHT) * seconds / end


def panel(top, bottom, low, high, ticks, title, scale=lambda value: value):
    """Draws the frame of a panel; returns the function from a value to its height."""

    def up(value):
        return bottom - (bottom - top) * (scale(value) - scale(low)) / (scale(high) - scale(low))

    for value in ticks:
        line([(LEFT, up(value)), (WIDTH - RIGHT, up(value))], GRID)
        text(LEFT - 8, up(value) + 4.5, f"{value:g}".replace("-", "−"), anchor="end")
    box(across(gust[0]), top, across(gust[1]), bottom, GUST, 0.45)
    line([(LEFT, top), (LEFT, bottom), (WIDTH - RIGHT, bottom)], MUTED)
    text(LEFT, top - 8, title, size=14, more='font-weight="bold"')
    return up


def curve(rows, column, up):
    return [(across(row["seconds"]), up(row[column])) for row in rows]


# The angle. It ends at 1 rad for a pole that fell.
angles = [row["angle_rad"] for row in watched + alone]
low, high = min(angles) - 0.05, max(angles) + 0.15
up = panel(40, 210, low, high, [n / 2 for n in range(-2, 3) if low < n / 2 < high], "Angle of the pole (rad)")
line(curve(alone, "angle_rad", up), ORANGE, 2.5, "7 4")
line(curve(watched, "angle_rad", up), BLUE, 2.5)
fell = alone[-1]["seconds"]
x, y = across(fell), up(alone[-1]["angle_rad"])
line([(x - 5, y - 5), (x + 5, y + 5)], ORANGE, 3)
line([(x - 5, y + 5), (x + 5, y - 5)], ORANGE, 3)
text(x + 12, y - 8, f"without the monitor: the pole fell at {fell:.1f} s", "#b04e00")
text(across(5.6), up(0.2), "with the monitor: balanced to the end", BLUE)
text(across(gust[0]) - 6, 60, f"gust, {gust[0]:g} to {gust[1]:g} s", "#a0457a", anchor="end")

# The uncertainty.
enter, leave = watched[0]["enter_nats"], watched[0]["exit_nats"]
most = max(row["uncertainty_nats"] for row in watched)
up = panel(254, 414, 1.0, 10 ** math.ceil(math.log10(most)), [1, 10, 100, 1000],
           "Uncertainty u, with the monitor (nats, logarithmic)", math.log10)
for value, words in ((enter, f"distrust above {enter:.1f}"), (leave, f"trust again below {leave:.1f}")):
    line([(LEFT, up(value)), (WIDTH - RIGHT, up(value))], INK, 1.5, "5 4")
    text(across(0.6), up(value) - 6, words)
line(curve(watched, "uncertainty_nats", up), BLUE, 2.5)

# Who drives, and when that changes.
text(LEFT, 450, "Who drives, with the monitor", size=14, more='font-weight="bold"')
for driver, begin, until in drivers:
    nominal = driver == "policy"
    box(across(begin), 458, across(until), 486, GREEN if nominal else SAFE, 0.45 if nominal else 0.6)
    if until - begin > 2.0:
        words = "learned policy" if nominal else "safe controller (fallback)"
        text((across(begin) + across(until)) / 2, 477, words, anchor="middle")
    if begin > 0.0:
        line([(across(begin), 458), (across(begin), 492)], INK)
        text(across(begin), 506, f"{begin:g} s", anchor="middle")
line([(LEFT, 516), (WIDTH - RIGHT, 516)], MUTED)
for seconds in range(0, end + 1, 2):
    line([(across(seconds), 516), (across(seconds), 521)], MUTED)
    text(across(seconds), 536, str(seconds), anchor="middle")
text((LEFT + WIDTH - RIGHT) / 2, 557, "time (s)", anchor="middle")

output = sys.argv[1] if len(sys.argv) > 1 else "timeline.svg"
with open(output, "w") as file:
    file.write(f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="570" viewBox="0 0 {WIDTH} 570"'
               ' font-family="system-ui, -apple-system, \'Segoe UI\', \'DejaVu Sans\', sans-serif">\n'
               '<rect width="100%" height="100%" fill="#fff"/>\n' + "\n".join(svg) + "\n</svg>\n")
print(output)
