"""JPEG files of every kind that Pillow writes, and what Pillow reads of them: for the tests of dab-train/src/data/images.

    python3 jpegs.py       # NumPy 2.4, Pillow 13.0.0 (libjpeg-turbo 3.2.0)

Writes the files into jpegs/, and the SHA-256 of `open(file).convert("RGB")` into jpegs.json.
"""

import hashlib
import io
import json
from pathlib import Path

import numpy as np
from PIL import Image

# Name, width, height, mode, and how the file is written. Odd sizes leave blocks, and the halved colours of blocks, incomplete.
FILES = [
    ("full-30", 33, 29, "RGB", {"quality": 30, "subsampling": "4:4:4"}),
    ("full-95-progressive", 17, 31, "RGB", {"quality": 95, "subsampling": "4:4:4", "progressive": True}),
    ("half-wide-75", 35, 18, "RGB", {"quality": 75, "subsampling": "4:2:2"}),
    ("half-wide-50-progressive", 19, 23, "RGB", {"quality": 50, "subsampling": "4:2:2", "progressive": True}),
    ("half-90", 48, 32, "RGB", {"quality": 90, "subsampling": "4:2:0"}),
    ("half-60", 37, 41, "RGB", {"quality": 60, "subsampling": "4:2:0", "optimize": True}),
    ("half-80-progressive", 51, 27, "RGB", {"quality": 80, "subsampling": "4:2:0", "progressive": True}),
    ("half-restarts", 45, 50, "RGB", {"quality": 85, "subsampling": "4:2:0", "restart_marker_blocks": 2}),
    ("half-tiny", 3, 2, "RGB", {"quality": 85, "subsampling": "4:2:0"}),
    ("one-pixel", 1, 1, "RGB", {"quality": 75, "subsampling": "4:2:0", "progressive": True}),
    ("rgb", 21, 20, "RGB", {"quality": 85, "keep_rgb": True}),
    ("grey", 22, 33, "L", {"quality": 70}),
    ("grey-progressive", 40, 9, "L", {"quality": 40, "progressive": True}),
    ("cmyk", 20, 27, "CMYK", {"quality": 85}),
    ("ycck", 26, 19, "CMYK", {"quality": 85}),
]


def pixels(width, height, salt):
    """A smooth picture with edges, saturated corners and noise."""
    y, x = np.mgrid[0:height, 0:width].astype("float64")
    planes = []
    for c in range(3):
        wave = 100 * np.sin(0.31 * (c + 1) * x + 0.17 * y + salt) + 60 * np.cos(0.11 * x - 0.23 * (c + 1) * y)
        edge = 120.0 * ((2 * x + y + 9 * c) % 27 > 13)
        noise = (x * 7919 + y * 104729 + c * 1299709 + salt * 15485863) % 29
        planes.append(np.clip(90 + wave + edge - 30 + noise, 0, 255))
    return np.stack(planes, axis=-1).round().astype("uint8")


here = Path(__file__).resolve().parent
(here / "jpegs").mkdir(exist_ok=True)
digests = {}
for salt, (name, width, height, mode, options) in enumerate(FILES):
    file = io.BytesIO()
    Image.fromarray(pixels(width, height, salt)).convert(mode).save(file, "JPEG", **options)
    data = file.getvalue()
    if name == "ycck":
        # Adobe's marker says how four colours are meant: its last byte is 2 for YCCK.
        marker = data.index(b"Adobe")
        data = data[: marker + 11] + b"\x02" + data[marker + 12 :]
    path = here / "jpegs" / f"{name}.jpg"
    path.write_bytes(data)
    seen = Image.open(path).convert("RGB")
    digests[path.name] = {"size": seen.size, "sha256": hashlib.sha256(seen.tobytes()).hexdigest()}
(here / "jpegs.json").write_text(json.dumps(digests, indent=1) + "\n")
