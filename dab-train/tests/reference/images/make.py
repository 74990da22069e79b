"""Image files from the tools that published sets were written with, for the tests of dab-train/src/data/images.

    python2.7 make.py     # NumPy 1.16.6: cifar-*: cPickle, protocol 2, as CIFAR is distributed
    python3 make.py       # NumPy 2.4.6, SciPy 1.17.1, Pillow 13.0.0: the others

The pixels are a formula of ours, the same in the tests.
"""

import pickle
import sys
import zlib

import numpy as np


def pixels(image, side=32):
    """colour x row x column"""
    c, r, x = np.meshgrid(np.arange(3), np.arange(side), np.arange(side), indexing="ij")
    return ((40 * image + 60 * c + 5 * r + 3 * x) % 256).astype("uint8")


rows = lambda count: np.stack([pixels(i).reshape(-1) for i in range(count)])
dump = lambda name, value, protocol: open(name, "wb").write(pickle.dumps(value, protocol))

if sys.version_info[0] == 2:
    import cPickle as pickle

    dump("cifar10-python2.pickle", {"batch_label": "training batch 1 of 5", "labels": [6, 9], "data": rows(2),
         "filenames": ["leptodactylus_pentadactylus_s_000004.png", "camion_s_000148.png"]}, 2)
    dump("cifar100-python2.pickle", {"filenames": ["bos_taurus_s_000507.png"], "batch_label": "training batch 1 of 1",
         "fine_labels": [19], "coarse_labels": [11], "data": rows(1)}, 2)
else:
    from PIL import Image
    from scipy.io import savemat

    for protocol in (2, 4, 5):
        dump("cifar10-python3-%d.pickle" % protocol, {"labels": [3], "data": rows(1)}, protocol)
    dump("cifar10-columns.pickle", {"labels": [1, 2], "data": np.asfortranarray(rows(2))}, 4)
    # row x column x colour x image, as SVHN has them.
    x = np.stack([pixels(i).transpose(1, 2, 0) for i in range(2)], axis=-1)
    y = np.array([[10], [3]], dtype="uint8")
    savemat("svhn.mat", {"X": x, "y": y}, do_compression=True)
    savemat("svhn-plain.mat", {"X": x[..., :1], "y": y[:1].astype("float64")}, do_compression=False)

    picture = Image.fromarray(pixels(1, 16).transpose(1, 2, 0))
    # What ImageNet has besides colour: grey, CMYK, and a PNG that is called .JPEG.
    picture.save("colour.JPEG", "JPEG", quality=95, subsampling=0)
    picture.convert("L").save("grey.JPEG", "JPEG", quality=95)
    picture.convert("CMYK").save("cmyk.JPEG", "JPEG", quality=95, subsampling=0)
    picture.save("png.JPEG", "PNG")

    # Every operation of RandAugment at magnitude 9 of 30, with both signs where there are two.
    from PIL import ImageEnhance, ImageOps

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
