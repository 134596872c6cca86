"""Third-party clients. Each module has one class of its own, a `Peer`.

A peer is asked for paths, in one of these modes, and puts the files into a folder under the last part of their paths:

| mode | what |
|---|---|
| `plain` | all paths on one connection |
| `many` | the same, many at a time |
| `separate` | a connection for each path |
| `resume` | the first path on one connection, the others on a second that resumes it |
| `early` | the same with 0-RTT |
| `chacha20` | no other cipher is offered |
| `key-update` | keys are changed between the first path and the others |
| `negotiate` | it starts with an unknown version |
| `v2` | it begins with version 1 and knows version 2 |
| `migrate` | it changes its address while data flows |
| `gallery` | a page is loaded, with its pictures |
"""

import concurrent.futures
import dataclasses
import importlib
import json
import os
import pathlib
import signal
import subprocess
import sys

from cases import Failed

CLIENTS = pathlib.Path(__file__).resolve().parent.parent / "clients"
ORDER = ["gtlsclient", "aioquic", "curl_cffi", "niquests", "chromium", "firefox", "quic_go", "quinn"]


@dataclasses.dataclass
class Ask:
    """What a peer must do."""

    host: str
    port: int
    paths: list
    folder: pathlib.Path
    mode: str
    seconds: float
    key_hash: str
    output: pathlib.Path
    authority_file: pathlib.Path = None  # who has signed the server's certificate, for those who want that

    @property
    def authority(self):
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Peer:
    name = ""
    modes = {"plain"}
    features = set()  # of "ipv6", "ecn"
    wants_authority = False  # whether it rejects self-signed certificates
    why_not = {}  # case: what is known to be the peer's own fault, so that its failure is expected
    modes_without_files = {"gallery"}  # in these, the peer itself says whether all came

    def version(self):
        """What it calls itself; None if it is not here."""
        raise NotImplementedError

    def offers(self, case):
        if self.wants_authority and case.long_chain:
            return False
        return case.mode in self.modes and (not case.needs or case.needs in self.features)

    def fetch(self, ask):
        raise NotImplementedError


def command(ask, argv, **more):
    """Runs a program; it and its children end when the time is over."""
    with ask.output.open("a") as output:
        print("+", *argv[:12], file=output, flush=True)
        process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True, **more)
        try:
            code = process.wait(ask.seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise Failed(f"took longer than {ask.seconds:g} s") from None
    if code:
        lines = [line for line in ask.output.read_text(errors="replace").splitlines() if line.strip()]
        raise Failed(f"ended with {code}: {lines[-1][:150]}")


def separately(ask, fetch, at_a_time=10):
    """Each path by a call of its own."""
    asks = [dataclasses.replace(ask, paths=[path], mode="plain") for path in ask.paths]
    with concurrent.futures.ThreadPoolExecutor(at_a_time) as pool:
        for done in [pool.submit(fetch, one) for one in asks]:
            done.result()


def python(ask, client):
    """Runs one of our little programs around a package."""
    wish = {key: str(value) if isinstance(value, pathlib.Path) else value for key, value in vars(ask).items()}
    command(ask, [sys.executable, "-W", "ignore", str(CLIENTS / client), json.dumps({**wish, "authority": ask.authority})])


def package(name):
    """Version of a Python package that is installed."""
    from importlib import metadata

    try:
        return f"{name} {metadata.version(name)}"
    except metadata.PackageNotFoundError:
        return None


def all_peers():
    return [importlib.import_module(f"peers.{name}").PEER for name in ORDER]
