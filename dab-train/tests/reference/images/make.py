"""Image files from the tools that published sets were written with, for the tests of dab-train/src/data/images.

    python3 make.py       # NumPy 2.4.6, Pillow 13.0.0

The pixels are a formula of ours, the same in the tests.
"""

import zlib

import numpy as np
from PIL import Image, ImageEnhance, ImageOps


def pixels(image, side=32):
    """colour x row x column"""
    c, r, x = np.meshgrid(np.arange(3), np.arange(side), np.arange(side), indexing="ij")
    return ((40 * image + 60 * c + 5 * r + 3 * x) % 256).astype("uint8")


picture = Image.fromarray(pixels(1, 16).transpose(1, 2, 0))
# What ImageNet has besides colour: grey, CMYK, and a PNG that is called .JPEG.
picture.save("colour.JPEG", "JPEG", quality=95, subsampling=0)
picture.convert("L").save("grey.JPEG", "JPEG", quality=95)
picture.convert("CMYK").save("cmyk.JPEG", "JPEG", quality=95, subsampling=0)
picture.save("png.JPEG", "PNG")

# Every operation of RandAugment at magnitude 9 of 30, with both signs where there are two.
side, strength = 20, 9 / 30
picture = Image.fromarray(pixels(1, side).transpose(1, 2, 0))
affine = lambda *matrix: picture.transform((side, side), Image.Transform.AFFINE, matrix)
shift = int(150 / 331 * side * strength)
enhance = lambda kind: lambda s: kind(picture).enhance(1 + s * 0.9 * strength)
operations = [
    lambda s: affine(1, s * 0.3 * strength, 0, 0, 1, 0),
    lambda s: affine(1, 0, 0, s * 0.3 * strength, 1, 0),
    lambda s: affine(1, 0, s * shift, 0, 1, 0),
    lambda s: affine(1, 0, 0, 0, 1, s * shift),
    lambda s: picture.rotate(s * 30 * strength),
    enhance(ImageEnhance.Brightness),
    enhance(ImageEnhance.Color),
    enhance(ImageEnhance.Contrast),
    enhance(ImageEnhance.Sharpness),
    lambda _: ImageOps.posterize(picture, 8 - round(4 * strength)),
    lambda _: ImageOps.solarize(picture, 255 * (1 - strength)),
    lambda _: ImageOps.autocontrast(picture),
    lambda _: ImageOps.equalize(picture),
]
made = [np.asarray(op(sign)).transpose(2, 0, 1).tobytes() for op in operations for sign in (1, -1)]
open("rand-augment.zlib", "wb").write(zlib.compress(b"".join(made), 9))
