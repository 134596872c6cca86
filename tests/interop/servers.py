"""Third-party servers. All answer `/100k` with an object of that size."""

import os
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import sys
import time

from cases import Failed

UNITS = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


def size(path):
    return int(path.rstrip("kmg")) * UNITS.get(path[-1], 1)


def noise(path):
    """The same bytes for the same path."""
    return random.Random(path).randbytes(size(path))


def make_files(folder, paths):
    folder.mkdir(parents=True)
    for path in paths:
        (folder / path).write_bytes(noise(path))


class Running:
    """A process that has bound its port."""

    def __init__(self, argv, host, port, folder, **more):
        self.port = port
        with (folder / "output.txt").open("w") as output:
            self.process = subprocess.Popen([str(part) for part in argv], stdin=subprocess.DEVNULL, stdout=output,
                                            stderr=output, start_new_session=True, **more)
        until = time.monotonic() + 20
        while not is_bound(host, port):
            if self.process.poll() is not None or time.monotonic() > until:
                self.stop()
                raise Failed("the server did not start: " + (folder / "output.txt").read_text()[-200:])
            time.sleep(0.02)

    def stop(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def is_bound(host, port):
    """Whether a UDP socket has this port."""
    table = "/proc/net/udp6" if ":" in host else "/proc/net/udp"
    rows = pathlib.Path(table).read_text().splitlines()[1:]
    return any(int(row.split()[1].rsplit(":", 1)[1], 16) == port for row in rows)


def free_port(host):
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as sock:
        sock.bind((host, 0))
        return sock.getsockname()[1]


class Other:
    """A server."""

    name = ""
    features = set()
    why_not = {}  # case: what is known to be the server's own fault, so that its failure is expected

    def is_here(self):
        return self.program() is not None

    def program(self):
        raise NotImplementedError

    def argv(self, case, base, port):
        raise NotImplementedError

    def content(self, path):
        return b"x" * size(path)

    def start(self, case, base, folder):
        port = free_port(case.host)
        env = dict(os.environ, TLS=str(base / "tls"), GOMAXPROCS="2")
        return Running(self.argv(case, base, port), case.host, port, folder, env=env)


def built(name):
    found = pathlib.Path(os.environ.get("INTEROP_PEERS", "")) / name
    return found if os.environ.get("INTEROP_PEERS") and found.exists() else shutil.which(name)


class Gtlsserver(Other):
    """Debian's ngtcp2-server."""

    name = "gtlsserver"
    features = {"retry", "resumption", "0-rtt", "ipv6", "rebinding"}

    def program(self):
        return shutil.which("gtlsserver")

    def content(self, path):
        # A number is taken for a length, of zeros, whatever files there are.
        return bytes(size(path)) if path.isdigit() else noise(path)

    def argv(self, case, base, port):
        validates = ["-V"] if case.name == "retry" else []
        tls = base / "tls"
        return [self.program(), "-q", *validates, "-d", base / "www", case.host, port, tls / "key.pem", tls / "chain.pem"]


class Sized(Other):
    """A program of tests/peers around a library: `PROGRAM server ADDRESS:PORT`."""

    def __init__(self, name, program, features, why_not=None):
        self.name, self.file, self.features, self.why_not = name, program, features, why_not or {}

    def program(self):
        return built(self.file)

    def argv(self, case, base, port):
        host = f"[{case.host}]" if ":" in case.host else case.host
        return [self.program(), "server", f"{host}:{port}"]


class QuicGo(Sized):
    def content(self, path):
        return bytes(size(path))


class Aioquic(Other):
    name = "aioquic"
    features = {"resumption", "0-rtt", "rebinding"}

    def program(self):
        try:
            import aioquic  # noqa: F401
        except ImportError:
            return None
        return pathlib.Path(__file__).resolve().parent.parent / "peers" / "aioquic_server.py"

    def argv(self, case, base, port):
        return [sys.executable, self.program(), port]


ALL = [
    Gtlsserver(),
    QuicGo("quic-go", "p_quicgo", {"resumption", "0-rtt", "ipv6", "rebinding"}),
    Sized("quinn", "p_quinn", {"resumption", "0-rtt", "ipv6", "rebinding"}),
    Aioquic(),
]


def named(name):
    return next(server for server in ALL if server.name == name)
