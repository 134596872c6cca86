"""`lastbyte serve` as a process, from its line `listening on` to its end."""

import base64
import hashlib
import json
import os
import re
import signal
import socket
import subprocess
import threading


class Server:
    """Runs at once; `stop` ends it and says what it has left behind. Without a folder `www` the flags say what is served."""

    def __init__(self, binary, folder, www, flags, host="127.0.0.1", identity=None, port=0):
        self.folder, self.log_path, self.qlogs = folder, folder / "conns.ndjson", folder / "qlog"
        listen = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        who = ["--cert", identity / "chain.pem", "--key", identity / "key.pem"] if identity else ["--self-signed"]
        self.process = subprocess.Popen(
            [binary, "serve", "--listen", listen, *who, "--log", self.log_path, *flags, *(["--generated", www] if www else [])],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        )
        self.output = []
        for line in self.process.stderr:
            self.output.append(line)
            if line.startswith("listening on"):
                break
        else:
            raise RuntimeError("the server did not start: " + "".join(self.output))
        self.port = int(re.search(r":(\d+) ", self.output[-1]).group(1))
        found = re.search(r"spki-list=(\S+)", "".join(self.output))
        self.key_hash = found.group(1) if found else identity and key_hash(identity)
        self.reader = threading.Thread(target=lambda: self.output.extend(self.process.stderr), daemon=True)
        self.reader.start()

    def stop(self):
        """Ends it as an operator would, and reads what it wrote."""
        self.process.send_signal(signal.SIGTERM)
        try:
            self.code = self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            self.code = "did not end within 10 s of SIGTERM"
        self.reader.join()
        self.lines = [json.loads(line) for line in self.log_path.read_text().splitlines()]
        found = re.search(r"(\d+) connections, (\d+) requests \((\d+) as 0-RTT\)", "".join(self.output))
        self.connections, self.requests, self.early = map(int, found.groups()) if found else (0, 0, 0)

    def total(self, key):
        """A counter of all connections."""
        return sum(line.get(key) or 0 for line in self.lines)


def make_chain(folder, length):
    """A certificate for localhost, and others behind it that only make the chain long."""
    folder.mkdir(parents=True, exist_ok=True)
    chain = ""
    for number in range(length):
        kind = ["ec", "-pkeyopt", "ec_paramgen_curve:P-256"] if number == 0 else ["rsa:2048"]
        key = folder / ("key.pem" if number == 0 else "other.pem")
        out = subprocess.run(
            ["openssl", "req", "-x509", "-newkey", *kind, "-nodes", "-days", "12", "-keyout", key, "-subj",
             f"/CN=localhost/O=link {number} of a long chain", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
             "-addext", "basicConstraints=critical,CA:FALSE"],
            check=True, capture_output=True, text=True,
        )
        chain += out.stdout
    (folder / "chain.pem").write_text(chain)
    return folder


def make_signed(folder):
    """An authority, and a certificate for localhost that it has signed: for who insists on one."""
    folder.mkdir(parents=True, exist_ok=True)

    def openssl(*words):
        subprocess.run(["openssl", *words], check=True, capture_output=True, cwd=folder)

    new = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    openssl("req", "-x509", *new, "-days", "12", "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=Authority for interop",
            "-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=critical,keyCertSign")
    openssl("req", *new, "-keyout", "key.pem", "-out", "request.pem", "-subj", "/CN=localhost")
    (folder / "extensions").write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\nbasicConstraints=critical,CA:FALSE\n"
                                       "extendedKeyUsage=serverAuth\n")
    openssl("x509", "-req", "-in", "request.pem", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "12",
            "-out", "chain.pem", "-extfile", "extensions")
    return folder


def key_hash(folder):
    """SHA-256 of the public key, as Chromium wants it."""
    der = subprocess.run(
        ["openssl", "pkey", "-in", folder / "key.pem", "-pubout", "-outform", "der"], check=True, capture_output=True
    ).stdout
    return base64.b64encode(hashlib.sha256(der).digest()).decode()


def binary(top):
    """The program that is tried."""
    return os.environ.get("LASTBYTE") or str(top / "target/release/lastbyte")


def free_port():
    """A port of 127.0.0.1 on which nothing listens now."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]
