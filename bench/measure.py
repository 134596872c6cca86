#!/usr/bin/env python3
"""Measures servers side by side: Lastbyte, nginx, H2O, quinn and s2n-quic. Started by bench/run, which builds and installs them.

The server runs on core 0 and its client on core 1, over loopback. Each round runs each case with each server once, so that
noise from other work reaches all of them alike; a comparison is a ratio within a round, and the table shows the median of
the rounds and the range. CPU time is the scheduler's (/proc/PID/task/*/schedstat, nanoseconds).
"""

import argparse
import datetime
import json
import os
import platform
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

FOLDER = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(FOLDER)
PAGE = os.path.join(ROOT, "docs", "performance.md")
PEERS = os.environ["BENCH_PEERS"]
LASTBYTE = os.environ["BENCH_LASTBYTE"]
SIZES = {"32k": 32 << 10, "1": 1}
#: The row of `lastbyte get` as the client.
GET = "lastbyte h3, `get`"

CASES = {
    "bulk": "one response of {bulk} from a file, CPU s/GB",
    "32k": "32 KiB responses over 10 connections, 10 at a time on each, CPU µs each",
    "1b": "1-byte responses, likewise, CPU µs each",
    "full": "a connection with a full handshake and one request, CPU µs",
    "resumed": "a connection with a resumed handshake and one request, CPU µs",
    "0rtt": "a connection whose one request is sent as 0-RTT data, CPU µs",
}


class Bench:
    """Where everything is, and how much is asked for."""

    def __init__(self, arguments, scratch, files):
        self.scratch, self.files = scratch, files
        self.bulk = arguments.bulk
        self.requests, self.handshakes = arguments.requests, arguments.handshakes
        self.key, self.certificate = scratch + "/key.pem", scratch + "/cert.pem"

    def prepare(self):
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
             "-keyout", self.key, "-out", self.certificate, "-subj", "/CN=localhost", "-addext",
             "subjectAltName=DNS:localhost,IP:127.0.0.1", "-addext", "basicConstraints=critical,CA:FALSE"],
            check=True, stderr=subprocess.DEVNULL)
        piece = os.urandom(1 << 20)
        with open(self.files + "/bulk", "wb") as file:
            for _ in range(self.bulk >> 20):
                file.write(piece)
        for name, size in SIZES.items():
            with open(f"{self.files}/{name}", "wb") as file:
                file.write(os.urandom(size))
        self.paths = {"bulk": "/bulk", "32k": "/32k", "1b": "/1"}
        with open(self.scratch + "/nginx.conf", "w") as file:
            file.write(f"""daemon off; worker_processes 1; pid {self.scratch}/nginx.pid; error_log {self.scratch}/nginx.log;
events {{ worker_connections 4096; }}
http {{
  access_log off; sendfile on; tcp_nopush on; keepalive_requests 100000000; http2_max_concurrent_streams 256;
  open_file_cache max=100;
  server {{
    listen 127.0.0.1:17080 ssl http2; root {self.files};
    ssl_certificate {self.certificate}; ssl_certificate_key {self.key}; ssl_protocols TLSv1.3;
  }}
}}
""")
        with open(self.scratch + "/h2o.conf", "w") as file:
            file.write(f"""num-threads: 1
user: {os.environ.get("USER", "root")}
listen: {{ host: 127.0.0.1, port: 17081, ssl: {{ certificate-file: {self.certificate}, key-file: {self.key} }} }}
hosts: {{ default: {{ paths: {{ /: {{ file.dir: {self.files} }} }} }} }}
""")

    def servers(self):
        serve = [LASTBYTE, "serve", self.files, "--workers", "1", "--cert", self.certificate, "--key", self.key, "--listen"]
        quinn, s2n = PEERS + "/p_quinn", PEERS + "/p_s2n"
        return {
            "lastbyte h3": Server(self, serve + ["127.0.0.1:17090"], 17090, "h3"),
            "quinn h3": Server(self, [quinn, "server", "127.0.0.1:17082"], 17082, "h3", makes_bodies=True),
            "s2n-quic raw": Server(self, [s2n, "server", "127.0.0.1:17083"], 17083, "raw", makes_bodies=True),
            "lastbyte h2": Server(self, serve + ["127.0.0.1:17091"], 17091, "h2"),
            "nginx h2": Server(self, ["nginx", "-p", self.scratch, "-c", self.scratch + "/nginx.conf"], 17080, "h2"),
            "h2o h2": Server(self, ["h2o", "-c", self.scratch + "/h2o.conf"], 17081, "h2"),
        }


def descendants(pid):
    found = [pid]
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            for child in open(f"/proc/{pid}/task/{thread}/children").read().split():
                found += descendants(int(child))
    except OSError:
        pass
    return found


def cpu_seconds(pid):
    """The CPU time of a process, its threads and children."""
    nanoseconds = 0
    for process in descendants(pid):
        try:
            for thread in os.listdir(f"/proc/{process}/task"):
                nanoseconds += int(open(f"/proc/{process}/task/{thread}/schedstat").read().split()[0])
        except OSError:
            pass
    return nanoseconds / 1e9


def peak_memory(pid):
    """The sum of the peaks of resident memory, in bytes."""
    total = 0
    for process in descendants(pid):
        status = open(f"/proc/{process}/status").read()
        found = re.search(r"VmHWM:\s+(\d+) kB", status)
        total += int(found.group(1)) << 10 if found else 0
    return total


class Server:
    def __init__(self, bench, command, port, protocol, makes_bodies=False, cores="0"):
        self.bench, self.command, self.port = bench, command, port
        self.protocol, self.makes_bodies, self.cores = protocol, makes_bodies, cores

    def start(self, wrapper=()):
        environment = dict(os.environ, TLS=self.bench.scratch)
        self.log = open(f"{self.bench.scratch}/server-{self.port}.log", "wb")
        self.process = subprocess.Popen(["taskset", "-c", self.cores, *wrapper, *self.command], env=environment,
                                        stdin=subprocess.DEVNULL, stdout=self.log, stderr=subprocess.STDOUT)
        # The local address, and the state: listening, or a UDP socket.
        table, state = ("tcp", "0A") if self.protocol == "h2" else ("udp", "07")
        for _ in range(6000):
            if re.search(f":{self.port:04X} \\S+ {state} ", open(f"/proc/net/{table}").read()):
                return
            if self.process.poll() is not None:
                break
            time.sleep(0.01)
        sys.exit(f"{self.command[0]}: does not listen on port {self.port}; it says:\n"
                 + open(self.log.name, errors="replace").read())

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            for process in reversed(descendants(self.process.pid)):
                os.kill(process, signal.SIGKILL)
            self.process.wait()
        self.log.close()

    def client(self, case, requests=None):
        """The command of the client, and how many responses it asks for; None where the two do not support the case."""
        bench, address = self.bench, f"127.0.0.1:{self.port}"
        count = requests or {"bulk": 1, "32k": bench.requests, "1b": 2 * bench.requests}.get(case, bench.handshakes)
        if self.protocol == "h2":
            if case in ("resumed", "0rtt"):
                return None
            path = bench.paths.get(case, "/1")
            n, connections, streams = (count, min(count, 10), 10) if case in ("32k", "1b") else (count, count, 1)
            return ["h2load", "--tls13-ciphers=TLS_AES_128_GCM_SHA256", "-n", str(n), "-c", str(connections),
                    "-m", str(streams), f"https://{address}{path}"], count
        length = {"bulk": f"/{bench.bulk}", "32k": "/32k"}.get(case, "/1")
        # quinn's and s2n-quic's programs make their bodies: a path is a length.
        path = length if self.makes_bodies else bench.paths.get(case, "/1")
        if self.protocol == "raw":
            return {
                "bulk": ([PEERS + "/p_s2n", "raw", address, length[1:]], 1),
                "32k": ([PEERS + "/p_s2n", "rawload", address, "32k", str(count), "10", "10"], count),
                "1b": ([PEERS + "/p_s2n", "rawload", address, "1", str(count), "10", "10"], count),
                # One client for all servers: its datagrams decide how often a server wakes.
                "full": ([PEERS + "/p_quinn", "rawhs", address, "1", str(count), "8"], count),
            }.get(case)
        program = PEERS + "/p_quinn"
        if case == "bulk":
            return [program, "get", address, path], 1
        if case in ("32k", "1b"):
            return [program, "load", address, path, str(count), "10", "10"], count
        return [program, "hs", address, path, str(count), "8", case], count

    def ask(self, case, requests=None, limit=300):
        """Runs the client on core 1. The number of responses, the bytes, and the client's CPU time."""
        command, count = self.client(case, requests)
        before = os.times()
        environment = dict(os.environ, TLS=self.bench.scratch)
        done = subprocess.run(["taskset", "-c", "1", *command], capture_output=True, text=True, timeout=limit,
                              env=environment, check=False)
        after = os.times()
        client = sum(after[2:4]) - sum(before[2:4])
        if h2load := re.search(r"(\d+) succeeded.*\n.*status codes: (\d+) 2xx", done.stdout):
            responses = int(h2load.group(2))
            body = int(re.search(r"\((\d+)\) data", done.stdout).group(1))
        elif own := re.search(r"reqs=(\d+) bytes=(\d+)", done.stdout):
            responses, body = int(own.group(1)), int(own.group(2))
        else:
            responses = body = 0
        size = {"bulk": self.bench.bulk, "32k": SIZES["32k"]}.get(case, 1)
        if done.returncode or responses != count or body != count * size:
            output = (done.stderr or done.stdout).strip().splitlines()[-1:]
            raise RuntimeError(f"{' '.join(command)}: {responses} of {count} responses, {body} bytes {output}")
        return responses, body, client


def measured(server, case):
    """One run. CPU seconds for 1e9 bytes (bulk), or microseconds of CPU time for a response."""
    server.start()
    try:
        if case != "bulk":
            # Pages, tables and caches of the first requests are not what a case is about.
            server.ask("1b" if case != "32k" else "32k", requests=100)
        before = cpu_seconds(server.process.pid)
        started = time.monotonic()
        responses, body, client = server.ask(case)
        seconds = time.monotonic() - started
        used = cpu_seconds(server.process.pid) - before
        unit = body / 1e9 if case == "bulk" else responses / 1e6
        return {"server": used / unit, "client": client / unit, "seconds": seconds, "responses": responses,
                "bytes": body, "peak": peak_memory(server.process.pid), "load": os.getloadavg()[0]}
    finally:
        server.stop()


def received(server):
    """`lastbyte get` receives the file of the case bulk. CPU seconds for 1e9 bytes of the server and of `get`."""
    server.start()
    try:
        before, used = cpu_seconds(server.process.pid), os.times()
        subprocess.run(["taskset", "-c", "1", LASTBYTE, "get", "-k", "-s", "-o", "/dev/null", "--http3-only",
                        f"https://127.0.0.1:{server.port}/bulk"], check=True, timeout=300)
        client = sum(os.times()[2:4]) - sum(used[2:4])
        unit = server.bench.bulk / 1e9
        return {"server": (cpu_seconds(server.process.pid) - before) / unit, "client": client / unit}
    finally:
        server.stop()


def floor(bench):
    """CPU seconds for 1e9 bytes of the sender and the receiver of p_floor."""
    amount, program = str(bench.bulk), PEERS + "/p_floor"
    receiver = subprocess.Popen(["taskset", "-c", "1", program, "receive", "127.0.0.1:17085", amount],
                                stdout=subprocess.DEVNULL)
    while f":{17085:04X} " not in open("/proc/net/udp").read():
        time.sleep(0.01)
    sender = subprocess.Popen(["taskset", "-c", "0", program, "send", "127.0.0.1:17085", amount],
                              stdout=subprocess.DEVNULL)
    used = []
    for process in (sender, receiver):
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            sys.exit(f"p_floor: exit status {process.returncode}")
        used.append((usage.ru_utime + usage.ru_stime) / (bench.bulk / 1e9))
    return {"server": used[0], "client": used[1]}


def system_calls(server, case, requests):
    """System calls for a response, by name."""
    server.start()
    try:
        server.ask("1b", requests=20)
        output = server.bench.scratch + "/strace"
        pids = [argument for pid in descendants(server.process.pid) for argument in ("-p", str(pid))]
        tracer = subprocess.Popen(["strace", "-c", "-f", "-o", output, *pids], stderr=subprocess.PIPE, text=True)
        tracer.stderr.readline()
        server.ask(case, requests)
        tracer.send_signal(signal.SIGINT)
        tracer.wait()
        calls = {}
        for line in open(output):
            if row := re.match(r"\s*[\d.]+\s+[\d.]+\s+\d+\s+(\d+)\s+(?:\d+\s+)?(\w+)$", line):
                if row.group(2) != "total":
                    calls[row.group(2)] = int(row.group(1)) / requests
        return calls
    finally:
        server.stop()


def allocations(server, case, few, many):
    """Allocations and bytes allocated for a response, under valgrind: the slope over three runs. None if the first half of
    the slope is not the second one, within a tenth."""
    totals = []
    counts = (few, (few + many) // 2, many)
    for requests in counts:
        server.start(wrapper=["valgrind", "--tool=dhat", "--dhat-out-file=/dev/null", "--trace-children=yes"])
        try:
            server.ask(case, requests)
        finally:
            server.stop()
        log = open(server.log.name, errors="replace").read()
        found = re.findall(r"Total:\s+([\d,]+) bytes in ([\d,]+) blocks", log)
        if not found:
            return None
        totals.append([sum(int(row[of].replace(",", "")) for row in found) for of in (1, 0)])
    slope = lambda first, last, of: (totals[last][of] - totals[first][of]) / (counts[last] - counts[first])
    if abs(slope(0, 1, 0) - slope(1, 2, 0)) > 0.1 * abs(slope(0, 2, 0)):
        return None
    return [slope(0, 2, of) for of in (0, 1)]


# Where a sample of a profile belongs: the first pattern that its symbol matches.
PARTS = [
    ("quic, wire, congestion", r"lastbyte_(quic|wire|congestion|units)"),
    ("http3", r"lastbyte_http3"),
    ("server, driver, udp, record", r"lastbyte_"),
    ("cryptography", r"aws_lc|ring_core|aes|gcm|ghash|p256|ecp_|x25519|curve25519|sha(256|512)|bn_|HMAC|EVP|CRYPTO|RAND_|mont|jent"),
    ("TLS", r"rustls"),
    ("hyper, h2, tokio", r"hyper|(^|[<&])h2::|tokio|\bhttp::"),
    ("standard library", r"core::|alloc::|std::|hashbrown"),
]


def part(frames):
    """The part that a sample belongs to. `frames` are (symbol, object), the innermost first."""
    symbol, file = frames[0]
    if "kernel" in file or file.startswith("["):
        for name, _ in frames:
            if call := re.search(r"(?:_?sys_(?!call\b)|^do_(?=writev|readv))(\w+)$", name):
                return "kernel: " + call.group(1)
            if "page_fault" in name:
                return "kernel: page faults"
        return "kernel: other"
    if "/libc" in file:
        return "C library"
    return next((name for name, pattern in PARTS if re.search(pattern, symbol)), "other")


def profile(server, case):
    """The shares of CPU time by part, and how many samples they rest on."""
    output = server.bench.scratch + "/perf.data"
    server.start()
    try:
        server.ask("1b", requests=100)
        recorder = subprocess.Popen(["perf", "record", "-q", "-F", "4000", "-e", "cpu-clock", "-g", "-o", output,
                                     "-p", str(server.process.pid)], stderr=subprocess.DEVNULL)
        time.sleep(0.5)
        server.ask(case)
        recorder.send_signal(signal.SIGINT)
        recorder.wait()
    finally:
        server.stop()
    script = subprocess.run(["perf", "script", "-i", output, "-F", "ip,sym,dso"], capture_output=True, text=True, check=True)
    shares, samples = {}, 0
    for sample in script.stdout.split("\n\n"):
        frames = re.findall(r"^\s*[0-9a-f]+ (.*) \(([^()]*)\)$", sample, re.MULTILINE)
        if frames and "idle" not in frames[0][0]:
            name, samples = part(frames), samples + 1
            shares[name] = shares.get(name, 0) + 1
    return {name: count / samples for name, count in shares.items()}, samples


def profiled(servers, cases):
    cases = [case for case in cases if case in ("bulk", "32k", "1b", "full")]
    tables = {}
    for name in ("lastbyte h3", "lastbyte h2"):
        if name not in servers:
            continue
        found = {case: profile(servers[name], case)[0] for case in cases}
        parts = sorted({part for shares in found.values() for part in shares},
                       key=lambda part: -sum(shares.get(part, 0) for shares in found.values()))
        rows = [[part, *(f"{100 * found[case].get(part, 0):.1f}" for case in cases)] for part in parts
                if any(found[case].get(part, 0) >= 0.01 for case in cases)]
        tables["profile-" + name.split()[1]] = table(["% of the server's CPU time", *cases], rows)
    return tables


def version(command, line=0):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = (done.stdout + done.stderr).strip().splitlines()
    return lines[line] if lines else "?"


def crate_version(name):
    lock = open(os.path.join(ROOT, "tests", "peers", "Cargo.lock")).read()
    return re.search(rf'name = "{name}"\nversion = "([^"]+)"', lock).group(1)


def machine():
    model = re.search(r"model name\s*: (.*)", open("/proc/cpuinfo").read())
    return [
        f"{datetime.date.today()}",
        f"{model.group(1) if model else platform.machine()}, {os.cpu_count()} cores, Linux {platform.release()}",
        f"Lastbyte {version(['git', '-C', ROOT, 'rev-parse', '--short', 'HEAD'])}, {version(['rustc', '--version'])}",
        version([LASTBYTE, "--version", "-v"], line=-1),
        f"{version(['nginx', '-v']).removeprefix('nginx version: ')}, "
        f"H2O {version(['h2o', '--version']).removeprefix('h2o version ')}, "
        f"quinn {crate_version('quinn')} with h3 {crate_version('h3')}, s2n-quic {crate_version('s2n-quic')}",
    ]


def number(value):
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:.0f}"


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|---|" + "--:|" * (len(head) - 1)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def timed_tables(results, servers, cases):
    median = lambda case, name, key: statistics.median(run[key] for run in results[case][name])
    cells = lambda key: table(["server", *cases], [
        [name, *(number(median(case, name, key)) if results[case].get(name) else "–" for case in cases)]
        for name in [*servers, GET, "floor"] if any(results[case].get(name) for case in cases)])
    ratios = []
    for ours, others in (("lastbyte h3", servers), ("lastbyte h2", ["nginx h2", "h2o h2"])):
        for name in others:
            if name == ours or ours not in servers or name not in servers:
                continue
            row = [f"{ours} / {name}"]
            for case in cases:
                pairs = [a["server"] / b["server"] for a, b in zip(results[case].get(ours, []), results[case].get(name, []))]
                row.append(f"{statistics.median(pairs):.2f} ({min(pairs):.2f}–{max(pairs):.2f})" if pairs else "–")
            ratios.append(row)
    if pairs := [a["client"] / b["client"] for a, b in zip(*(results.get("bulk", {}).get(it, []) for it in (GET, "floor")))]:
        ratios.append(["client: lastbyte get / floor", f"{statistics.median(pairs):.2f} ({min(pairs):.2f}–{max(pairs):.2f})"]
                      + ["–"] * (len(cases) - 1))
    peaks = table(["server", *cases], [
        [name, *(f"{median(case, name, 'peak') / 1e6:.1f}" if results[case].get(name) else "–" for case in cases)]
        for name in servers if any(results[case].get(name) for case in cases)])
    return {"server": cells("server"), "client": cells("client"), "ratios": table(["", *cases], ratios), "memory": peaks}


#: What asks the servers here.
CLIENTS = "h2load over HTTP/2, quinn's client over HTTP/3 and in `full`, s2n-quic's for its streams else"


def provenance(load):
    """The line above a table: what was measured, where, and by which client."""
    date, model, commit, *_ = machine()
    return f"*{commit.split(',')[0]}, {model.rsplit(',', 1)[0]}, {date}; load: {load}.*"


def put(name, text, path=PAGE, load=CLIENTS):
    """Replaces the part of the page between the marks with this name. A table has its provenance above it."""
    if "|---" in text:
        text = f"{provenance(load)}\n\n{text}"
    page = open(path).read()
    first, last = f"<!-- {name} -->\n", f"<!-- /{name} -->"
    start, end = page.index(first) + len(first), page.index(last)
    with open(path, "w") as file:
        file.write(page[:start] + "\n" + text + "\n\n" + page[end:])


def main():
    parser = argparse.ArgumentParser(prog="bench/run", description="Measure servers side by side.",
                                     formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5, help="rounds; each runs each case with each server once")
    parser.add_argument("--cases", default=",".join(CASES), help="cases to run")
    parser.add_argument("--servers", help="servers to run, separated by commas (default: all)")
    parser.add_argument("--bulk", type=int, default=1 << 30, metavar="BYTES", help="length of the bulk response")
    parser.add_argument("--requests", type=int, default=20_000, metavar="N", help="32 KiB responses; twice as many of 1 byte")
    parser.add_argument("--handshakes", type=int, default=1_000, metavar="N", help="connections of the handshake cases")
    parser.add_argument("--counts", action="store_true", help="count system calls and allocations as well (strace, valgrind)")
    parser.add_argument("--profile", action="store_true", help="show where our CPU time goes (perf)")
    parser.add_argument("--write", action="store_true", help="write the tables into docs/performance.md")
    parser.add_argument("--json", metavar="FILE", help="write each run to a file, one JSON object for each line")
    arguments = parser.parse_args()
    cases = arguments.cases.split(",")
    if unknown := [case for case in cases if case not in CASES]:
        parser.error(f"--cases: {unknown[0]} (expected {', '.join(CASES)})")
    if arguments.bulk % (1 << 20):
        parser.error(f"--bulk: {arguments.bulk} (expected a multiple of {1 << 20} bytes)")
    if os.cpu_count() < 2:
        sys.exit("bench/run: needs two cores, one for the server and one for the client")
    files = "/dev/shm" if shutil.disk_usage("/dev/shm").free > 2 * arguments.bulk else None
    with tempfile.TemporaryDirectory() as scratch, tempfile.TemporaryDirectory(dir=files) as files:
        run(arguments, cases, Bench(arguments, scratch, files))


def run(arguments, cases, bench):
    os.chmod(bench.files, 0o755)
    bench.prepare()
    servers = bench.servers()
    if arguments.servers:
        selected = arguments.servers.split(",")
        if unknown := [name for name in selected if name not in servers]:
            sys.exit(f"--servers: {unknown[0]} (expected {', '.join(servers)})")
        servers = {name: servers[name] for name in selected}
    results = {case: {} for case in cases}
    failures = []
    for number_of_round in range(arguments.rounds):
        for case in cases:
            for name, server in servers.items():
                if server.client(case) is None:
                    continue
                try:
                    outcome = measured(server, case)
                except (RuntimeError, subprocess.TimeoutExpired) as error:
                    failures.append(f"{name}, {case}: {error}")
                    print(failures[-1], file=sys.stderr, flush=True)
                    continue
                results[case].setdefault(name, []).append(outcome)
                if arguments.json:
                    with open(arguments.json, "a") as file:
                        file.write(json.dumps({"round": number_of_round, "case": case, "peer": name, **outcome}) + "\n")
            if case == "bulk":
                if "lastbyte h3" in servers:
                    results[case].setdefault(GET, []).append(received(servers["lastbyte h3"]))
                results[case].setdefault("floor", []).append(floor(bench))
        print(f"round {number_of_round + 1} of {arguments.rounds}", file=sys.stderr, flush=True)
    facts = "\n".join(f"- {line}" for line in machine())
    facts += f"\n- {arguments.rounds} rounds; load average {os.getloadavg()[0]:.1f} at the end"
    tables = {"machine": facts, **timed_tables(results, servers, cases)}
    if arguments.counts:
        tables |= counted(servers)
    if arguments.profile:
        tables |= profiled(servers, cases)
    for name, text in tables.items():
        print(f"\n== {name}\n{text}")
    print("\n" + "\n".join(f"{case}: {CASES[case].format(bulk=arguments.bulk)}" for case in cases))
    if arguments.write:
        for name, text in tables.items():
            put(name, text)
        print(f"written to {os.path.relpath(PAGE)}")
    if failures:
        sys.exit(f"{len(failures)} runs failed")


def counted(servers):
    calls, heap = [], []
    for name, server in servers.items():
        for case, requests in (("1b", 2000), ("32k", 2000), ("full", 200)):
            found = system_calls(server, case, requests)
            most = sorted(found.items(), key=lambda call: -call[1])
            calls.append([f"{name}, {case}", f"{sum(found.values()):.2f}",
                          ", ".join(f"{call} {count:.2f}" for call, count in most[:6] if count >= 0.01)])
        row = [name]
        for case, few, many in (("1b", 200, 1200), ("32k", 200, 1200), ("full", 20, 120)):
            found = allocations(server, case, few, many)
            row.append(f"{found[0]:.1f} ({found[1]:.0f} B)" if found else "–")
        heap.append(row)
    return {"system-calls": table(["server, case", "calls", "by name"], calls),
            "allocations": table(["server", "1b", "32k", "full"], heap)}


if __name__ == "__main__":
    main()
