"""What the tests of one library or tool share: its options, servers that end with it, and a line for each case."""

import argparse
import contextlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import traceback

from cases import Failed, need, skip
from server import Server, binary, make_signed

TOP = pathlib.Path(__file__).resolve().parent.parent.parent


class Stage:
    """A folder with a certificate for localhost, and the servers of a run."""

    def __init__(self, base, stack):
        self.base, self.stack = base, stack
        self.identity = make_signed(base / "identity")
        self.authority = self.identity / "ca.pem"
        self.count = 0

    def folder(self):
        self.count += 1
        folder = self.base / f"{self.count}"
        folder.mkdir()
        return folder

    def lastbyte(self, *flags, www=None):
        """`lastbyte serve` with these flags; its port."""
        server = Server(binary(TOP), self.folder(), www, flags, identity=self.identity)
        self.stack.callback(server.stop)
        return server.port

    def start(self, argv, port, cwd=None):
        """Another server, which listens on this port when it is returned."""
        with open(self.folder() / "output.txt", "wb") as output:
            process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd=cwd)
        self.stack.callback(lambda: (process.terminate(), process.wait()))
        until = time.monotonic() + 20
        # State 0A is LISTEN.
        while f":{port:04X} 00000000:0000 0A" not in pathlib.Path("/proc/net/tcp").read_text():
            need(process.poll() is None, f"`{argv[0]}` did not start: {pathlib.Path(output.name).read_text()}")
            need(time.monotonic() < until, f"`{argv[0]}` does not listen")
            time.sleep(0.02)


def peer(name):
    """The path of a program of tests/peers, or None."""
    path = pathlib.Path(os.environ.get("INTEROP_PEERS", TOP / "target/peers/release")) / name
    return path if path.exists() else None


def output_of(argv, seconds=60):
    """What a program prints; it has to succeed in this time."""
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        raise Failed(f"`{pathlib.Path(argv[0]).name}` took more than {seconds} s") from None
    need(done.returncode == 0, f"exit code {done.returncode}: {(done.stderr or done.stdout).strip()[-300:]}")
    return done.stdout


def run(doc, missing, prepare):
    """Runs the cases that `prepare` returns for a stage, as pairs of name and function. `missing` names what is not installed."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", default="", help="only cases whose name contains one of these, separated by commas")
    parser.add_argument("--keep", type=pathlib.Path, help="a folder for logs of servers")
    arguments = parser.parse_args()
    if missing:
        skip(missing)
        return
    base = arguments.keep or pathlib.Path(tempfile.mkdtemp(prefix="interop."))
    shutil.rmtree(base, ignore_errors=True)
    base.mkdir(parents=True)
    failed = count = 0
    with contextlib.ExitStack() as stack:
        for name, case in prepare(Stage(base, stack)):
            if not any(part in name for part in arguments.cases.split(",")):
                continue
            began = time.monotonic()
            sign, reason = "✓", ""
            try:
                case()
            except Failed as failure:
                sign, reason = "✗", str(failure)
            except Exception:  # a fault of the test is a failure, not the end
                sign, reason = "✗", traceback.format_exc(limit=-2).strip().replace("\n", " | ")
            count += 1
            failed += sign == "✗"
            print(f"{sign} {name:44} {time.monotonic() - began:5.1f} s  {reason}", flush=True)
    if not arguments.keep:
        shutil.rmtree(base)
    if failed or not count:
        sys.exit(f"{failed} of {count} cases failed")
