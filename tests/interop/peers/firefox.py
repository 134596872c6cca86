"""Firefox, headless, controlled through Marionette: JSON over a TCP connection."""

import base64
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import time

from cases import Failed

from . import Peer
from .chromium import FETCH, GALLERY

PROGRAMS = ("firefox-esr", "firefox")
PREFERENCES = {
    "marionette.port": 0,
    # It does without HTTP/3 where the user has brought authorities of their own.
    "network.http.http3.disable_when_third_party_roots_found": False,
    # Nothing goes out but what is asked for.
    "app.normandy.enabled": False,
    "browser.safebrowsing.downloads.remote.enabled": False,
    "datareporting.policy.dataSubmissionEnabled": False,
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
    "services.settings.server": "data:,",
    "toolkit.telemetry.enabled": False,
}
TRUST = """Cc["@mozilla.org/security/x509certdb;1"].getService(Ci.nsIX509CertDB).addCertFromBase64(arguments[0], "C,,");"""


def program():
    return next(filter(None, map(shutil.which, PROGRAMS)), None)


class Browser:
    """A process, and the connection to it. It trusts the given certificate authority."""

    def __init__(self, ask, begin_with_h3=True, more=None):
        """`more` are preferences."""
        self.ask, self.number = ask, 0
        self.ends = time.monotonic() + ask.seconds
        self.profile = ask.folder.parent / "profile"
        self.profile.mkdir()
        wishes = dict(PREFERENCES)
        if begin_with_h3:
            wishes["network.http.http3.alt-svc-mapping-for-testing"] = f"localhost;h3=:{ask.port}"
            # By default it tries HTTP/2 as well if a handshake takes longer than 100 ms, as on a busy machine.
            wishes["network.http.http3.backup_timer_delay"] = 10_000
        wishes.update(more or {})
        (self.profile / "user.js").write_text(
            "".join(f"user_pref({json.dumps(name)}, {json.dumps(value)});\n" for name, value in wishes.items()))
        self.output = ask.output.open("a")
        self.process = subprocess.Popen(
            [program(), "--headless", "--no-remote", "--marionette", "--remote-allow-system-access", "--profile", self.profile],
            stdin=subprocess.DEVNULL, stdout=self.output, stderr=self.output, start_new_session=True,
            env={**os.environ, "HOME": str(self.profile)},
        )
        self.socket = None
        try:
            self.connect()
            self.call("WebDriver:NewSession", capabilities={})
            self.call("Marionette:SetContext", value="chrome")
            der = "".join(line for line in ask.authority_file.read_text().splitlines() if "CERTIFICATE" not in line)
            self.call("WebDriver:ExecuteScript", script=TRUST, args=[der])
            self.call("Marionette:SetContext", value="content")
            limit = int(1000 * ask.seconds)
            self.call("WebDriver:SetTimeouts", script=limit, pageLoad=limit)
        except BaseException:
            self.close()
            raise

    def connect(self):
        """It writes down its port once it listens."""
        port_file = self.profile / "MarionetteActivePort"
        while not (port_file.exists() and port_file.read_text()):
            if self.process.poll() is not None:
                raise Failed("the browser is gone")
            self.left()
            time.sleep(0.05)
        self.socket = socket.create_connection(("127.0.0.1", int(port_file.read_text())))
        self.answers = self.socket.makefile("rb")
        self.read()

    def left(self):
        left = self.ends - time.monotonic()
        if left <= 0:
            raise Failed(f"took longer than {self.ask.seconds:g} s")
        return left

    def close(self):
        if self.socket:
            self.socket.close()
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.output.close()
        shutil.rmtree(self.profile, ignore_errors=True)

    def read(self):
        """`LENGTH:JSON`"""
        self.socket.settimeout(self.left())
        length = b""
        try:
            while (byte := self.answers.read(1)) != b":":
                if not byte:
                    raise Failed("the browser is gone")
                length += byte
            return json.loads(self.answers.read(int(length)))
        except TimeoutError:
            raise Failed(f"took longer than {self.ask.seconds:g} s") from None

    def call(self, command, **parameters):
        self.number += 1
        message = json.dumps([0, self.number, command, parameters]).encode()
        self.socket.sendall(b"%d:%s" % (len(message), message))
        _, _, error, found = self.read()
        if error:
            raise Failed(f"{command}: {error['message'][:150]}")
        return found

    def go(self, path):
        self.call("WebDriver:Navigate", url=f"https://localhost:{self.ask.port}/{path}")

    def evaluate(self, text):
        """What an expression comes to; if it is a promise, what that does."""
        script = ("const done = arguments[arguments.length - 1];"
                  f"Promise.resolve({text}).then((value) => done({{value}}), (error) => done({{error: String(error)}}))")
        found = self.call("WebDriver:ExecuteAsyncScript", script=script, args=[])["value"]
        if "error" in found:
            raise Failed(found["error"][:150])
        return found.get("value")


class Firefox(Peer):
    name = "firefox"
    modes = {"plain", "many", "gallery"}
    features = {"mtu"}
    wants_authority = True

    def version(self):
        if not program():
            return None
        done = subprocess.run([program(), "--version"], capture_output=True, text=True, check=False)
        return done.stdout.strip()

    def fetch(self, ask):
        browser = Browser(ask)
        try:
            if ask.mode == "gallery":
                browser.go(ask.paths[0])
                found = browser.evaluate(GALLERY)
                picture = browser.call("WebDriver:TakeScreenshot", full=False)["value"]
                (ask.folder.parent / "screenshot.png").write_bytes(base64.b64decode(picture))
                if found != {"images": 100, "protocols": ["h3"], "navigation": "h3"}:
                    raise Failed(f"the page came out as {found}")
                return
            browser.go("index.html")
            found = browser.evaluate(f"{FETCH}({json.dumps(ask.paths)}, {100 if ask.mode == 'many' else 1})")
            if found["protocols"] != ["h3"]:
                raise Failed(f"protocols: {found['protocols']}")
            for path, body in found["bodies"].items():
                (ask.folder / pathlib.Path(path).name).write_bytes(base64.b64decode(body))
        finally:
            browser.close()


PEER = Firefox()
