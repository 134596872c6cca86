"""Chromium, headless, controlled through the DevTools protocol over two pipes."""

import base64
import fcntl
import json
import os
import pathlib
import select
import shutil
import signal
import subprocess
import time

from cases import Failed

from . import Peer

# As a page would: with `fetch`, some at a time, and the bodies handed out in base64.
FETCH = """(async (paths, atATime) => {
  const bodies = {};
  const get = async (path) => {
    const response = await fetch('/' + path, {cache: 'no-store'});
    if (response.status != 200) throw Error(`status ${response.status} for ${path}`);
    const bytes = new Uint8Array(await response.arrayBuffer());
    let text = '';
    for (let at = 0; at < bytes.length; at += 32768)
      text += String.fromCharCode(...bytes.subarray(at, at + 32768));
    bodies[path] = btoa(text);
  };
  const queue = [...paths];
  const turns = Array.from({length: atATime}, async () => { while (queue.length) await get(queue.shift()); });
  await Promise.all(turns);
  const entries = [...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')];
  return {bodies, protocols: [...new Set(entries.map((entry) => entry.nextHopProtocol))]};
})"""

# What a gallery of a hundred pictures came out as.
GALLERY = """(async () => {
  await Promise.all([...document.images].map((image) => image.decode()));
  const entries = [...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')];
  return {images: [...document.images].filter((image) => image.naturalWidth == 8).length,
          protocols: [...new Set(entries.map((entry) => entry.nextHopProtocol))],
          navigation: performance.getEntriesByType('navigation')[0].nextHopProtocol};
})()"""


def moved(end):
    """An end of a pipe under a number above 3 and 4, which mean others to the browser."""
    other = fcntl.fcntl(end, fcntl.F_DUPFD, 10)
    os.close(end)
    return other


class Browser:
    """A process, and the two pipes to it."""

    def __init__(self, ask, quic=None, hosts="localhost", more=()):
        """With `quic` none, HTTP/3 is what it begins with; else the origins for which it does, as the flag has them. `hosts` are at
        the server's address: a name, or `*`. `more` flags."""
        self.ask, self.number, self.rest = ask, 0, b""
        self.ends = time.monotonic() + ask.seconds
        from_us, to_browser = os.pipe()
        from_browser, to_us = os.pipe()
        from_us, to_us = moved(from_us), moved(to_us)
        host = f"[{ask.host}]" if ":" in ask.host else ask.host
        flags = [
            "--headless=new", "--no-sandbox", "--no-first-run", "--disable-gpu", "--disable-background-networking",
            "--disable-component-update", "--disable-sync", "--remote-debugging-pipe",
            f"--user-data-dir={ask.folder.parent / 'profile'}", f"--origin-to-force-quic-on={f'localhost:{ask.port}' if quic is None else quic}",
            f"--ignore-certificate-errors-spki-list={ask.key_hash}",
            f"--host-resolver-rules=MAP {hosts} {host}, MAP * ~NOTFOUND, EXCLUDE {host}", *more, "about:blank",
        ]
        if os.environ.get("INTEROP_NETLOG"):
            flags += [f"--log-net-log={ask.folder.parent / 'netlog.json'}", "--net-log-capture-mode=Everything"]
        # 3 and 4 are the numbers that the flag means.
        script = f'exec "$@" 3<&{from_us} 4>&{to_us} {from_us}<&- {to_us}>&-'
        self.output = ask.output.open("a")
        self.process = subprocess.Popen(
            ["bash", "-c", script, "bash", shutil.which("chromium"), *flags], pass_fds=(from_us, to_us),
            stdin=subprocess.DEVNULL, stdout=self.output, stderr=self.output, start_new_session=True,
        )
        os.close(from_us)
        os.close(to_us)
        self.to, self.answers = to_browser, from_browser

    def close(self):
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        os.close(self.to)
        os.close(self.answers)
        self.output.close()
        shutil.rmtree(self.ask.folder.parent / "profile", ignore_errors=True)

    def messages(self):
        while True:
            *whole, self.rest = self.rest.split(b"\0")
            for message in whole:
                yield json.loads(message)
            left = self.ends - time.monotonic()
            if left <= 0 or not select.select([self.answers], [], [], left)[0]:
                raise Failed(f"took longer than {self.ask.seconds:g} s")
            data = os.read(self.answers, 1 << 20)
            if not data:
                raise Failed("the browser is gone")
            self.rest += data

    def call(self, method, session=None, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        for answer in self.messages():
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise Failed(f"{method}: {answer['error']['message']}")
                return answer["result"]
        return None

    def page(self, **more):
        target = self.call("Target.createTarget", url="about:blank", **more)["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.call("Page.enable", session)
        return session

    def go(self, session, path):
        found = self.call("Page.navigate", session, url=f"https://localhost:{self.ask.port}/{path}")
        if "errorText" in found:
            raise Failed(found["errorText"])

    def evaluate(self, session, text):
        found = self.call("Runtime.evaluate", session, expression=text, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in found:
            details = found["exceptionDetails"]
            raise Failed(details.get("exception", {}).get("description", details["text"])[:150])
        return found["result"].get("value")


class Chromium(Peer):
    name = "chromium"
    modes = {"plain", "many", "gallery"}
    features = {"ipv6", "mtu"}

    def version(self):
        if not shutil.which("chromium"):
            return None
        done = subprocess.run(["chromium", "--version", "--no-sandbox"], capture_output=True, text=True, check=False)
        return " ".join(done.stdout.split()[:2])

    def fetch(self, ask):
        browser = Browser(ask)
        try:
            session = browser.page()
            if ask.mode == "gallery":
                return self.gallery(browser, session, ask)
            browser.go(session, "index.html")
            wish = f"{FETCH}({json.dumps(ask.paths)}, {100 if ask.mode == 'many' else 1})"
            found = browser.evaluate(session, wish)
            if found["protocols"] != ["h3"]:
                raise Failed(f"protocols: {found['protocols']}")
            for path, body in found["bodies"].items():
                (ask.folder / pathlib.Path(path).name).write_bytes(base64.b64decode(body))
        finally:
            browser.close()

    @staticmethod
    def gallery(browser, session, ask):
        browser.go(session, ask.paths[0])
        # The promise waits for the pictures; the document itself may still be on its way.
        while browser.evaluate(session, "document.images.length") < 100:
            pass
        found = browser.evaluate(session, GALLERY)
        picture = browser.call("Page.captureScreenshot", session, format="png")["data"]
        (ask.folder.parent / "screenshot.png").write_bytes(base64.b64decode(picture))
        if found != {"images": 100, "protocols": ["h3"], "navigation": "h3"}:
            raise Failed(f"the page came out as {found}")


PEER = Chromium()
