"""A headless Chromium, driven over chromedriver's HTTP interface (W3C WebDriver) with Python's own library."""
import base64
import collections
import json
import shutil
import socket
import struct
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
import zlib

# Seconds until something that should happen counts as not happening: a loaded machine is slow.
PATIENCE = 60
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
         "--disable-background-networking", "--disable-component-update", "--hide-scrollbars"]


def missing():
    """The programs that are not installed."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    return [name for name, found in (("chromium", chromium), ("chromedriver", shutil.which("chromedriver"))) if not found]


class Browser:
    """One window of one browser with a fresh profile; close it with `with`."""

    def __init__(self, downloads):
        self.profile = tempfile.mkdtemp(prefix="dab-browser-")
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        self.base = f"http://127.0.0.1:{port}"
        # pylint: disable-next=consider-using-with
        self.driver = subprocess.Popen(["chromedriver", f"--port={port}"], stdout=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL)
        try:
            self.wait(self.ready, "chromedriver does not answer")
            options = {"args": [*FLAGS, f"--user-data-dir={self.profile}"]}
            for name in ("chromium", "chromium-browser", "google-chrome"):
                if shutil.which(name):
                    options["binary"] = shutil.which(name)
                    break
            wanted = {"goog:chromeOptions": options,
                      "goog:loggingPrefs": {"performance": "ALL", "browser": "ALL"}}
            session = self.call("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
            self.session = f"/session/{session['sessionId']}"
        except BaseException:
            self.close()
            raise
        self.cdp("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(downloads))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """Ends the browser and what was started for it."""
        if hasattr(self, "session"):
            try:
                self.call("DELETE", self.session)
            except OSError:
                pass
        self.driver.terminate()
        self.driver.wait()
        shutil.rmtree(self.profile, ignore_errors=True)

    def ready(self):
        try:
            return self.call("GET", "/status")["ready"]
        except OSError:
            return False

    @staticmethod
    def wait(condition, words):
        """What `condition` returns once it is true."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            if value := condition():
                return value
            time.sleep(0.05)
        raise AssertionError(words)

    def call(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.base + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=2 * PATIENCE) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise AssertionError(json.load(error)["value"]["message"]) from None

    def post(self, path, **body):
        return self.call("POST", self.session + path, body)

    def cdp(self, command, **parameters):
        """A command of Chromium's own protocol."""
        return self.post("/goog/cdp/execute", cmd=command, params=parameters)

    def open(self, url):
        self.post("/url", url=url)

    def script(self, text, *arguments):
        """Runs a function's body in the page."""
        return self.post("/execute/sync", script=text, args=list(arguments))

    def find(self, selector):
        found = self.post("/element", using="css selector", value=selector)
        return found[ELEMENT]

    def click(self, selector):
        self.post(f"/element/{self.find(selector)}/click")

    def type(self, selector, text):
        """Types into an element; a file input takes the paths of files."""
        self.post(f"/element/{self.find(selector)}/value", text=text)

    def drag(self, selector, right, down):
        """Drags an element with the mouse, in pixels."""
        origin = {ELEMENT: self.find(selector)}
        steps = [{"type": "pointerMove", "duration": 0, "origin": origin, "x": 0, "y": 0},
                 {"type": "pointerDown", "button": 0},
                 {"type": "pointerMove", "duration": 50, "origin": "pointer", "x": right // 2, "y": down // 2},
                 {"type": "pointerMove", "duration": 50, "origin": "pointer", "x": right - right // 2,
                  "y": down - down // 2},
                 {"type": "pointerUp", "button": 0}]
        self.post("/actions", actions=[{"type": "pointer", "id": "mouse", "actions": steps}])

    def log(self, kind):
        """What was logged since the last time."""
        return self.post("/se/log", type=kind)

    def requests(self):
        """Addresses that the page asked for since the last time."""
        messages = (json.loads(entry["message"])["message"] for entry in self.log("performance"))
        return [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]

    def screen(self, width, height, dark=False, touch=False):
        """The size and scheme of the screen."""
        self.cdp("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=touch)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.cdp("Emulation.setEmulatedMedia", features=[scheme])

    def picture(self):
        """The visible part of the page, as PNG."""
        return base64.b64decode(self.call("GET", f"{self.session}/screenshot"))


def size(png):
    """Width and height of a picture."""
    return struct.unpack(">II", png[16:24])


def pixels(png):
    """The rows of a picture with three bytes a pixel, as Chromium makes it."""
    width, height = size(png)
    assert png[24:26] == b"\x08\x02", "not 8 bits of red, green and blue"
    data, at = b"", 8
    while at < len(png):
        length, kind = struct.unpack(">I4s", png[at:at + 8])
        data += png[at + 8:at + 8 + length] if kind == b"IDAT" else b""
        at += 12 + length
    data, stride, before, rows = zlib.decompress(data), 3 * width, bytes(3 * width), []
    for start in range(0, height * (stride + 1), stride + 1):
        row = bytearray(data[start + 1:start + 1 + stride])
        for k in range(stride):
            left, corner = (row[k - 3], before[k - 3]) if k >= 3 else (0, 0)
            row[k] = row[k] + predicted(data[start], left, before[k], corner) & 255
        rows.append(row)
        before = row
    return rows


def predicted(method, left, above, corner):
    """What PNG's five filters expect a byte to be."""
    if method < 4:
        return (0, left, above, (left + above) // 2)[method]
    middle = left + above - corner
    return min((left, above, corner), key=lambda x: abs(middle - x))


def palette(colours):
    """At most 256 colours that stand for all, by cutting a wide and full box in two again and again."""
    def spread(box):
        return max(max(c[i] for c in box) - min(c[i] for c in box) for i in range(3))

    boxes = [list(colours)]
    while len(boxes) < 256:
        widest = max(boxes, key=lambda box: spread(box) * sum(colours[c] for c in box) ** 0.5)
        if len(widest) < 2:
            break
        axis = max(range(3), key=lambda i: max(c[i] for c in widest) - min(c[i] for c in widest))
        widest.sort(key=lambda c: c[axis])
        boxes.append(widest[len(widest) // 2:])
        del widest[len(widest) // 2:]
    # The colour of a box that most of its pixels have.
    return {colour: (k, max(box, key=colours.get)) for k, box in enumerate(boxes) for colour in box}


def smaller(png):
    """The same picture in 256 colours."""
    rows = [[tuple(row[k:k + 3]) for k in range(0, len(row), 3)] for row in pixels(png)]
    chosen = palette(collections.Counter(colour for row in rows for colour in row))
    table = dict(chosen.values())
    body = b"".join(b"\0" + bytes(chosen[colour][0] for colour in row) for row in rows)
    chunks = [(b"IHDR", png[16:24] + b"\x08\x03\0\0\0"), (b"PLTE", b"".join(bytes(table[k]) for k in sorted(table))),
              (b"IDAT", zlib.compress(body, 9)), (b"IEND", b"")]
    parts = (struct.pack(">I", len(d)) + kind + d + struct.pack(">I", zlib.crc32(kind + d)) for kind, d in chunks)
    return png[:8] + b"".join(parts)
