"""The playground's page in a browser, and the dab command beside it."""
import json
import os
import shutil
import struct
import subprocess
from pathlib import Path

from webdriver import Browser

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/playground"
ADDRESS = (PAGE / "index.html").as_uri()


class Bench:
    """The browser, the command, and a folder for files."""

    def __init__(self, browser, dab, folder):
        self.browser, self.dab, self.folder = browser, dab, folder
        self.downloads = folder / "downloads"

    def page(self, address=ADDRESS):
        """The page anew, with its demo."""
        self.browser.open(address)
        self.settle()

    def settle(self):
        state = "return document.body && document.body.dataset.state === 'ready'"
        Browser.wait(lambda: self.browser.script(state), "the page is not ready")

    def mapped(self):
        state = "return document.getElementById('plane').dataset.map === 'whole'"
        Browser.wait(lambda: self.browser.script(state), "there is no map")

    def give(self, model=None, rows=None):
        """Opens files with the page's file inputs."""
        for selector, path in (("#model-file", model), ("#rows-file", rows)):
            if path:
                self.browser.script("document.body.dataset.state = 'waiting'")
                self.browser.type(selector, str(path))
                self.settle()

    def text(self, selector):
        return self.browser.script("return document.querySelector(arguments[0]).textContent", selector)

    def value(self, selector):
        return self.browser.script("return document.querySelector(arguments[0]).value", selector)

    def alert(self):
        return self.browser.script("const a = document.getElementById('alert'); return a.hidden ? '' : a.textContent")

    def table(self):
        """The cells of the table of scores, without the first column."""
        return self.browser.script("return Array.from(document.querySelectorAll('#scores tbody tr'),"
                                   " r => Array.from(r.querySelectorAll('td'), c => c.textContent))")

    def download(self):
        """The bytes of the scores that the page gives to the visitor."""
        shutil.rmtree(self.downloads, ignore_errors=True)
        self.downloads.mkdir()
        self.browser.click("#download")
        done = Browser.wait(lambda: [p for p in self.downloads.glob("*.csv") if p.stat().st_size], "there is no download")
        return done[0].read_bytes()

    def run(self, *arguments):
        """The dab command in the folder, where files have short names."""
        return subprocess.run([self.dab, *map(str, arguments)], cwd=self.folder, capture_output=True, check=False)

    def write(self, name, content):
        path = self.folder / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def pack(self, name, tensors, **metadata):
        """A model made by `dab pack`; a tensor is its shape and its values."""
        header, data = {"__metadata__": metadata}, b""
        for key, (shape, values) in tensors.items():
            body = struct.pack(f"<{len(values)}f", *values)
            header[key] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(body)]}
            data += body
        text = json.dumps(header).encode()
        self.write("weights.safetensors", struct.pack("<Q", len(text)) + text + data)
        said = self.run("pack", "weights.safetensors", "-o", name)
        assert said.returncode == 0, said.stderr
        return self.folder / name

    def same_scores(self, model, rows):
        """Checks the download and the words for a model and a file, against `dab score --skip-bad`."""
        self.give(model=model, rows=rows)
        expected = self.run("score", model, rows.name, "--skip-bad")
        assert expected.returncode == 0, expected.stderr
        found = self.download()
        assert found == expected.stdout, difference(expected.stdout, found)
        words = expected.stderr.decode().strip().removeprefix("dab: ")
        assert words.split(" (are the")[0] in self.alert(), f"the page says {self.alert()!r}, dab {words!r}"
        assert bool(words) == bool(self.alert()), f"the page says {self.alert()!r}, dab {words!r}"

    def score(self, model, values):
        """u and p of one input, as `dab score` writes them."""
        rows = self.write("point.csv", ",".join(values) + "\n")
        line = self.run("score", model, rows.name).stdout.decode().splitlines()[1].split(",")
        return line[:3]


def find_dab(given):
    """The dab command: as given, of the environment, as cargo built it, or on the PATH."""
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "dab/target"
    built = Path(os.environ.get("CARGO_TARGET_DIR", cache)) / "release/dab"
    for path in (given, os.environ.get("DAB"), built, ROOT / "target/release/dab", shutil.which("dab")):
        if path and Path(path).is_file():
            return Path(path).resolve()
    return None


def difference(expected, found):
    for i, (a, b) in enumerate(zip(expected.splitlines(), found.splitlines())):
        if a != b:
            return f"line {i + 1}: expected {a!r}, found {b!r}"
    return f"expected {len(expected)} bytes, found {len(found)}"


def inputs(model):
    """Values per input of a model: the first number of its meta section."""
    value, shift = 0, 0
    for byte in model.read_bytes()[64:]:
        value |= (byte & 127) << shift
        if byte < 128:
            return value
        shift += 7
    raise AssertionError("no meta section")
