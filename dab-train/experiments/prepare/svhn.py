"""Converts SVHN's test images from MATLAB's format to svhn/test_32x32.npz, as `dab data svhn` says.

    python3 svhn.py data          # numpy, scipy

The data folder holds svhn/test_32x32.mat. In it an image is a plane of the last axis, and the label 10 is the digit 0.
"""

import argparse
import hashlib
import pathlib

import numpy as np
from scipy.io import loadmat

MD5 = "eb5a983be6a315427106f1b164d9cef3"


def convert(stored):
    """Images (n x side x side x 3) and digits of the arrays of a .mat file."""
    return stored["X"].transpose(3, 0, 1, 2), (stored["y"].ravel() % 10).astype(np.uint8)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=pathlib.Path, help="the data folder")
    path = parser.parse_args().data / "svhn" / "test_32x32.mat"
    found = hashlib.md5(path.read_bytes()).hexdigest()
    if found != MD5:
        parser.error(f"{path} is another file: its MD5 is {found}, expected {MD5}")
    x, y = convert(loadmat(path))
    np.savez_compressed(path.with_suffix(".npz"), x=x, y=y)
    print(f"{path.with_suffix('.npz')}: {len(y)} images")


if __name__ == "__main__":
    main()
