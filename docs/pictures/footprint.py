"""What dab costs on a Cortex-M4F, drawn from the cost table: python3 footprint.py [FILE] [OUTPUT.svg]

FILE holds the table that tests/cost/table.py wrote between its two marks (docs/performance.md, or else README.md).
Needs nothing but Python: no board, no emulator.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
# The rows that are drawn: how the table calls them, what the picture says (two lines), colour.
BLUE, SKY, GREY, ORANGE = "#0072b2", "#56b4e9", "#8a8a8a", "#d55e00"
ROWS = [
    ("motor: 26→24→16→4, k 4, Cholesky: dab, opt-level s", "dab, small code", "26→24→16→4, 4 codes", BLUE),
    ("640→8, k 10, spectral: dab, opt-level s", "dab, small code", "640→8, 10 codes", BLUE),
    ("640→8, k 10, spectral: dab, opt-level 3", "dab, fast code", "640→8, 10 codes", SKY),
    ("640→8, k 10, spectral: plain C, -O2", "plain C, this model only", "640→8, 10 codes", GREY),
    ("Rust, opt-level s: diagonal codebook of fixed size, no loader", "dab, codebook only", "4 codes, no loader", BLUE),
    ("mixture of 10 in 8 dimensions, no network: emlearn", "emlearn", "10 Gaussians, no network", ORANGE),
]
PANELS = [("text", "Code", "bytes of flash"), ("RAM in all", "RAM", "bytes, stack included"),
          ("most", "Instructions", "for one input, at most")]
WIDTH, LEFT, TOP, STEP, BAR = 760, 196, 84, 48, 22
INK, MUTED = "#222", "#555"


def table(path):
    """The rows of the cost table: name -> column -> number, or None where the table has a dash."""
    found = re.search(r"<!-- cost.*?-->(.*?)<!-- end of cost -->", path.read_text(encoding="utf-8"), re.DOTALL)
    if not found:
        sys.exit(f"footprint.py: {path} has no table between <!-- cost … --> and <!-- end of cost -->")
    lines = [line.strip().strip("|").split("|") for line in found[1].splitlines() if line.startswith("|")]
    head, *body = [[cell.strip() for cell in line] for line in lines]
    number = lambda cell: float(cell.replace(",", "")) if re.fullmatch(r"[\d,.]+", cell) else None
    return {cells[0]: dict(zip(head[1:], map(number, cells[1:]))) for cells in body[1:]}


def row(rows, name):
    """The row whose name begins so: what follows may be a version and flags."""
    for key, cells in rows.items():
        if key.startswith(name):
            return cells
    sys.exit(f"footprint.py: the cost table has no row “{name}”; it has: {'; '.join(rows)}")


def text(x, y, words, size=13, color=INK, anchor="start", weight="normal"):
    return f'<text x="{x}" y="{y}" font-size="{size}" fill="{color}" text-anchor="{anchor}" font-weight="{weight}">{words}</text>'


def draw(rows):
    """The picture, as SVG."""
    drawn = [(row(rows, name), *rest) for name, *rest in ROWS]
    svg = [text(16, 28, "What one assessment costs on a Cortex-M4F", 16, weight="bold")]
    for i, (_, first, second, _) in enumerate(drawn):
        y = TOP + STEP * i
        svg += [text(16, y + 10, first, weight="bold"), text(16, y + 26, second, 12, MUTED)]
    wide = (WIDTH - LEFT - 12) // len(PANELS)
    for p, (column, title, unit) in enumerate(PANELS):
        left = LEFT + wide * p
        svg += [text(left, 54, title, 14, weight="bold"), text(left, 71, unit, 12, MUTED)]
        most = max(cells[column] or 0 for cells, *_ in drawn)
        for i, (cells, _, _, color) in enumerate(drawn):
            y, value = TOP + STEP * i, cells[column]
            # The longest bar leaves room for its number.
            length = 0 if value is None else max(1.5, (wide - 72) * value / most)
            svg.append(f'<rect x="{left}" y="{y}" width="{length:.1f}" height="{BAR}" fill="{color}"/>')
            shown = "not measured" if value is None else f"{value:,.0f}"
            svg.append(text(f"{left + length + 5:.1f}", y + 16, shown, 13 if value else 12, INK if value else MUTED))
        bottom = TOP + STEP * len(drawn) - 18
        svg.append(f'<path d="M{left} {TOP - 6}V{bottom}" stroke="#999"/>')
    y = TOP + STEP * len(drawn) + 8
    notes = [
        "Not the same work: the first three rows load any model file, check every byte and input, and run the network",
        "in front of the codes. The plain C has its model compiled in and checks nothing; emlearn is a mixture of",
        "Gaussians and has no network in front of it. Weights are not counted as code.",
    ]
    svg += [text(16, y + 17 * i, words, 12, MUTED) for i, words in enumerate(notes)]
    height = y + 17 * len(notes)
    font = "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif"
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}"'
            f' font-family="{font}">\n<rect width="100%" height="100%" fill="#fff"/>\n' + "\n".join(svg) + "\n</svg>\n")


def main():
    default = ROOT / "docs/performance.md"
    if not (default.exists() and "<!-- cost" in default.read_text(encoding="utf-8")):
        default = ROOT / "README.md"
    source = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else default
    output = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else ROOT / "docs/pictures/footprint.svg"
    output.write_text(draw(table(source)), encoding="utf-8")


if __name__ == "__main__":
    main()
