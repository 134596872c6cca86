#!/usr/bin/env python3
"""The table of the field: servers under `lastbyte bench`, over HTTP/3 and HTTP/2. Started by bench/field.

Servers, cores and CPU times are those of measure.py: server on core 0, generator on core 1, over loopback. Each round runs each
case with each server once; the tables show medians over the rounds.
"""

import argparse
import json
import os
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from measure import (LASTBYTE, PEERS, ROOT, SIZES, Bench, Server, cpu_seconds, machine, number, put, table, version)

PAGE = os.path.join(ROOT, "docs", "performance.md")
OBJECT = 32 << 20
#: Port of Caddy; the others are those of measure.py.
CADDY = 17084


class Field(Bench):
    """The servers of measure.py, and Caddy."""

    def prepare(self):
        super().prepare()
        with open(self.scratch + "/Caddyfile", "w") as file:
            file.write(f"""{{
  admin off
  auto_https off
  storage file_system {self.scratch}/caddy
}}
https://localhost:{CADDY}, https://127.0.0.1:{CADDY} {{
  bind 127.0.0.1
  tls {self.certificate} {self.key}
  root * {self.files}
  file_server
}}
""")

    def servers(self):
        all = super().servers()
        caddy = ["caddy", "run", "--adapter", "caddyfile", "--config", self.scratch + "/Caddyfile"]
        if not shutil.which("caddy"):
            return all
        return {**all, "caddy h3": Server(self, caddy, CADDY, "h3"), "caddy h2": Server(self, caddy, CADDY, "h2")}


def has(option):
    """Whether `lastbyte bench` has this option."""
    found = subprocess.run([LASTBYTE, "bench", "--help"], capture_output=True, text=True, check=True).stdout
    return re.search(rf"^ +(-\w, )?{option}\b", found, re.MULTILINE) is not None


def on_core_1(command, scratch):
    """Runs a client. Its output, and its CPU time in seconds."""
    used = lambda: sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])
    before = used()
    done = subprocess.run(["taskset", "-c", "1", *command], capture_output=True, text=True, timeout=300,
                          env=dict(os.environ, TLS=scratch), check=False)
    after = used()
    if done.returncode:
        output = (done.stderr or done.stdout).strip().splitlines()[-1:]
        raise RuntimeError(f"{' '.join(command)}: exit status {done.returncode} {output}")
    return done.stdout, after - before


def loaded(server, path, options, requests, expected_bytes=None):
    """A run of `lastbyte bench`: what is in the tables."""
    version_of_http = "3" if server.protocol == "h3" else "2"
    command = [LASTBYTE, "bench", "-k", "--json", "--http", version_of_http, "-n", str(requests), *options,
               f"https://localhost:{server.port}{path}"]
    before = cpu_seconds(server.process.pid)
    output, generator = on_core_1(command, server.bench.scratch)
    used = cpu_seconds(server.process.pid) - before
    result = json.loads(output)
    done = result["requests"]["succeeded"]
    data = result["traffic"]["data_bytes"]
    if done != requests or (expected_bytes is not None and data != requests * expected_bytes):
        raise RuntimeError(f"{' '.join(command)}: {done} of {requests} responses, {data} bytes, {result['errors']}")
    latency = result["latency_us"]
    return {
        "rate": result["requests_per_second"],
        "server": used / requests * 1e6,
        "generator": generator / requests * 1e6,
        "p50": latency["p50"],
        "p99": latency["p99"],
        "header": result["traffic"]["header_bytes"] / requests,
    }


def path_of(server, case):
    """quinn's program makes its bodies: a path is a length."""
    length = {"32M": OBJECT, "32k": SIZES["32k"], "1": 1}[case]
    return f"/{length}" if server.makes_bodies else {"32M": "/bulk", "32k": "/32k", "1": "/1"}[case]


def objects(server, case, requests):
    """The experiment of Apache Traffic Server: 10 connections, 10 requests at a time on each."""
    length = {"32M": OBJECT, "32k": SIZES["32k"]}[case]
    return loaded(server, path_of(server, case), ["-c", "10", "-m", "10"], requests, length)


def mixed(server, requests):
    """Kuaishou's mix: of 61 requests, one over a new connection, ten as 0-RTT data, and fifty over a connection in use."""
    return loaded(server, path_of(server, "32k"), ["-c", "10", "--mix", "new=1,0rtt=10,reused=50"], requests, SIZES["32k"])


def handshakes(server, kind, connections):
    """Connections of one request each."""
    if server.protocol == "raw":
        command = [PEERS + "/p_s2n", "rawhs", f"127.0.0.1:{server.port}", "1", str(connections), "8"]
    elif has("--mix"):
        way = {"full": "new", "resumed": "resumed", "0rtt": "0rtt"}[kind]
        return loaded(server, path_of(server, "1"), ["-c", "8", "--mix", f"{way}=1"], connections, 1)
    else:
        kinds = {"full": "full", "resumed": "resume", "0rtt": "0rtt"}
        command = [PEERS + "/p_quinn", "hs", f"127.0.0.1:{server.port}", path_of(server, "1"), str(connections), "8", kinds[kind]]
    before, start = cpu_seconds(server.process.pid), time.monotonic()
    output, generator = on_core_1(command, server.bench.scratch)
    seconds = time.monotonic() - start
    used = cpu_seconds(server.process.pid) - before
    found = re.search(r"reqs=(\d+)", output)
    if not found or int(found.group(1)) != connections:
        raise RuntimeError(f"{' '.join(command)}: {output.strip()}")
    return {"rate": connections / seconds, "server": used / connections * 1e6, "generator": generator / connections * 1e6,
            "p50": None, "p99": None, "header": None}


def beside_h2load(server, requests):
    """The same load by `lastbyte bench` and by h2load, over HTTP/2: ours, and h2load's."""
    ours = loaded(server, path_of(server, "32k"), ["-c", "10", "-m", "10"], requests, SIZES["32k"])
    command = ["h2load", "--tls13-ciphers=TLS_AES_128_GCM_SHA256", "-n", str(requests), "-c", "10", "-m", "10",
               f"https://127.0.0.1:{server.port}/32k"]
    output, generator = on_core_1(command, server.bench.scratch)
    rate = re.search(r"([\d.]+) req/s", output)
    succeeded = re.search(r"(\d+) succeeded", output)
    headers = re.search(r"\((\d+)\) headers", output)
    if not rate or int(succeeded.group(1)) != requests:
        raise RuntimeError(f"{' '.join(command)}: {output}")
    return {**{f"our_{key}": ours[key] for key in ("rate", "generator", "header")}, "rate": float(rate.group(1)),
            "generator": generator / requests * 1e6, "header": int(headers.group(1)) / requests}


def cases(arguments):
    """By name: what it is, which servers take part, and how a server is measured."""
    h3 = ["lastbyte h3", "quinn h3", "caddy h3"]
    h2 = ["lastbyte h2", "nginx h2", "h2o h2", "caddy h2"]
    all = {
        "32M": (f"32 MiB objects, `-n {arguments.large} -c 10 -m 10`", h3 + h2,
                lambda server: objects(server, "32M", arguments.large)),
        "32k": (f"32 KiB objects, `-n {arguments.small} -c 10 -m 10`", h3 + h2,
                lambda server: objects(server, "32k", arguments.small)),
        "full": ("connections with a full handshake and one request", h3 + ["s2n-quic raw"],
                 lambda server: handshakes(server, "full", arguments.handshakes)),
        "resumed": ("connections with a resumed handshake and one request", h3,
                    lambda server: handshakes(server, "resumed", arguments.handshakes)),
        "0rtt": ("connections whose request is 0-RTT data", ["lastbyte h3", "quinn h3"],
                 lambda server: handshakes(server, "0rtt", arguments.handshakes)),
        "h2load": ("`lastbyte bench` beside h2load over HTTP/2, 32 KiB objects", ["nginx h2", "h2o h2", "lastbyte h2"],
                   lambda server: beside_h2load(server, arguments.small)),
    }
    if has("--mix"):
        all["mix"] = ("a mix of 1 new connection, 10 resumed with 0-RTT and 50 requests over connections in use, 32 KiB objects",
                      ["lastbyte h3", "quinn h3"], lambda server: mixed(server, arguments.mixed))
    return all


def run(arguments, field):
    os.chmod(field.files, 0o755)
    field.prepare()
    servers, all = field.servers(), cases(arguments)
    selected = arguments.cases.split(",") if arguments.cases else list(all)
    if unknown := [case for case in selected if case not in all]:
        sys.exit(f"--cases: {unknown[0]} (expected {', '.join(all)})")
    results, failures = {case: {} for case in selected}, []
    for index in range(arguments.rounds):
        for case in selected:
            _, names, measure = all[case]
            for name in names:
                if name not in servers:
                    continue
                servers[name].start()
                try:
                    # Pages, tables and caches of the first requests are not what a case is about.
                    servers[name].ask("1b", requests=100)
                    results[case].setdefault(name, []).append(measure(servers[name]))
                except (RuntimeError, subprocess.TimeoutExpired) as error:
                    failures.append(f"{name}, {case}: {error}")
                    print(failures[-1], file=sys.stderr, flush=True)
                finally:
                    servers[name].stop()
        print(f"round {index + 1} of {arguments.rounds}", file=sys.stderr, flush=True)
    facts = "\n".join(f"- {line}" for line in machine())
    if "caddy h3" in servers:
        facts += f"\n- Caddy {version(['caddy', 'version'])}"
    facts += f"\n- medians of {arguments.rounds} rounds; load average {os.getloadavg()[0]:.1f} at the end"
    tables = {"machine-field": facts}
    for case in selected:
        what = all[case][0]
        text = beside(results[case]) if case == "h2load" else shown(results[case])
        tables[case] = f"{what[0].upper()}{what[1:]}:\n\n{text}"
    for name, text in tables.items():
        print(f"\n== {name}\n{text}")
    if arguments.write:
        for name, text in tables.items():
            put(name, text, PAGE, "`lastbyte bench` and h2load" if name == "h2load" else LOAD)
        print(f"written to {os.path.relpath(PAGE)}")
    if failures:
        sys.exit(f"{len(failures)} runs failed")


#: What asks the servers here.
LOAD = "`lastbyte bench`, and s2n-quic's client for its handshakes"


def median(runs, key):
    values = [run[key] for run in runs if run[key] is not None]
    return statistics.median(values) if values else None


def cell(value, scale=1.0):
    return "–" if value is None else number(value * scale)


def shown(results):
    head = ["server", "requests/s", "server CPU µs each", "generator CPU µs each", "P50 ms", "P99 ms", "header bytes each"]
    return table(head, [
        [name, cell(median(runs, "rate")), cell(median(runs, "server")), cell(median(runs, "generator")),
         cell(median(runs, "p50"), 1e-3), cell(median(runs, "p99"), 1e-3), cell(median(runs, "header"))]
        for name, runs in results.items()])


def beside(results):
    head = ["server", "requests/s, bench", "h2load", "ratio", "CPU µs each, bench", "h2load", "header bytes each, bench", "h2load"]
    rows = []
    for name, runs in results.items():
        ratio = statistics.median(run["our_rate"] / run["rate"] for run in runs)
        rows.append([name, cell(median(runs, "our_rate")), cell(median(runs, "rate")), f"{ratio:.3f}",
                     cell(median(runs, "our_generator")), cell(median(runs, "generator")),
                     cell(median(runs, "our_header")), cell(median(runs, "header"))])
    return table(head, rows)


def main():
    parser = argparse.ArgumentParser(prog="bench/field", description="Measure servers under `lastbyte bench`.",
                                     formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3, help="rounds; each runs each case with each server once")
    parser.add_argument("--cases", help="cases to run, separated by commas (default: all)")
    parser.add_argument("--large", type=int, default=100, metavar="N", help="requests for 32 MiB")
    parser.add_argument("--small", type=int, default=20_000, metavar="N", help="requests for 32 KiB")
    parser.add_argument("--mixed", type=int, default=6_100, metavar="N", help="requests of the mix")
    parser.add_argument("--handshakes", type=int, default=1_000, metavar="N", help="connections of the handshake cases")
    parser.add_argument("--write", action="store_true", help="write the tables into docs/performance.md")
    arguments = parser.parse_args()
    if os.cpu_count() < 2:
        sys.exit("bench/field: needs two cores, one for the server and one for the generator")
    arguments.bulk, arguments.requests = OBJECT, arguments.small
    with tempfile.TemporaryDirectory() as scratch, tempfile.TemporaryDirectory(dir="/dev/shm") as files:
        run(arguments, Field(arguments, scratch, files))


if __name__ == "__main__":
    main()
