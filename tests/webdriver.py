"""A headless Chromium, driven over chromedriver's HTTP interface (W3C WebDriver) with Python's own library."""
import base64
import json
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

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
