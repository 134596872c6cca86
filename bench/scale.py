#!/usr/bin/env python3
"""One worker of `lastbyte serve` and its clients on one core, beside two workers and twice the clients on two cores.

The clients share the cores with the workers, since the machine may have no others: the ratio is that of responses per second of
everything together. A worker that waits for a lock of another leaves its core idle or spins, and both show. `futex` counts the
system calls of the server that wait for a lock or wake another thread, for 1000 responses of two workers.
"""

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

from measure import LASTBYTE, Bench, Server, cpu_seconds, machine, number, put, table

CASES = {
    "bulk": ["-m", "1"],
    "32k": ["-m", "10"],
    "1b": ["-m", "10"],
    "full": ["-m", "1", "--mix", "new=1"],
}
#: For each worker: generator threads, each with a socket of its own, so that the kernel spreads them over the workers.
JOBS, CONNECTIONS = 8, 16


def pairs(bench, protocol, workers):
    """A server with this many workers, on as many cores."""
    port = 17095 if protocol == "h3" else 17096
    command = [LASTBYTE, "serve", bench.files, "--workers", str(workers), "--cert", bench.certificate, "--key", bench.key,
               "--listen", f"127.0.0.1:{port}"]
    return Server(bench, command, port, protocol, cores="0,1" if workers == 2 else "0")


def load(server, case, workers, options):
    command = ["taskset", "-c", server.cores, LASTBYTE, "bench", "-k", "--json", "--http", server.protocol[1:], "-t",
               str(JOBS * workers), "-c", str(CONNECTIONS * workers), *CASES[case], *options,
               f"https://127.0.0.1:{server.port}{server.bench.paths.get(case, '/1')}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: exit status {done.returncode}: {done.stderr.strip()}")
    result = json.loads(done.stdout)
    if result["requests"]["failed"]:
        sys.exit(f"{' '.join(command)}: {result['requests']}")
    return result


def measured(server, case, workers, seconds):
    """Responses per second, and CPU µs of the server for a response."""
    server.start()
    try:
        load(server, "1b", workers, ["-n", "1000"])
        before = cpu_seconds(server.process.pid)
        result = load(server, case, workers, ["-D", f"{seconds}s"])
        used = cpu_seconds(server.process.pid) - before
        return result["requests_per_second"], used / result["requests"]["succeeded"] * 1e6
    finally:
        server.stop()


def lock_calls(server, case, workers):
    """Calls of futex for 1000 responses."""
    report = f"{server.bench.scratch}/strace.txt"
    server.start()
    try:
        tracer = subprocess.Popen(["strace", "-f", "-c", "-U", "name,calls", "-o", report, "-p", str(server.process.pid)],
                                  stderr=subprocess.PIPE, text=True)
        for line in tracer.stderr:
            if "attached" in line:
                break
        load(server, "1b", workers, ["-n", "100"])
        requests = 2000
        load(server, case, workers, ["-n", str(requests)])
        tracer.terminate()
        tracer.wait()
        found = re.search(r"^futex\s+(\d+)", open(report).read(), re.MULTILINE)
        return (int(found.group(1)) if found else 0) * 1000 / requests
    finally:
        server.stop()


def run(arguments, bench):
    os.chmod(bench.files, 0o755)
    bench.prepare()
    results = {}
    for index in range(arguments.rounds):
        for protocol in ("h3", "h2"):
            for case in arguments.cases:
                for workers in (1, 2):
                    outcome = measured(pairs(bench, protocol, workers), case, workers, arguments.seconds)
                    results.setdefault((protocol, case, workers), []).append(outcome)
        print(f"round {index + 1} of {arguments.rounds}", file=sys.stderr, flush=True)
    rows = []
    for protocol in ("h3", "h2"):
        for case in arguments.cases:
            one, two = results[protocol, case, 1], results[protocol, case, 2]
            ratios = [b[0] / a[0] for a, b in zip(one, two)]
            cpu = [b[1] / a[1] for a, b in zip(one, two)]
            median = lambda runs: number(statistics.median(run[0] for run in runs))
            rows.append([f"{protocol}, {case}", median(one), median(two),
                         f"{statistics.median(ratios):.2f} ({min(ratios):.2f}–{max(ratios):.2f})",
                         f"{statistics.median(cpu):.2f}",
                         number(lock_calls(pairs(bench, protocol, 2), case, 2)) if case != "bulk" else "–"])
    text = "\n".join(f"- {line}" for line in machine()) + (
        f"\n- {arguments.rounds} rounds of {arguments.seconds} s; load average {os.getloadavg()[0]:.1f} at the end\n\n")
    text += table(["case", "one worker, responses/s", "two workers", "ratio", "CPU of the server each, ratio", "futex"], rows)
    print(text)
    if arguments.write:
        put("scale", text, load="`lastbyte bench`")


def main():
    parser = argparse.ArgumentParser(prog="bench/scale", description="Measure two workers on two cores beside one on one.",
                                     formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5, help="rounds; each runs each case once")
    parser.add_argument("--seconds", type=int, default=4, help="measured time of a run")
    parser.add_argument("--cases", default=",".join(CASES), help="cases to run")
    parser.add_argument("--write", action="store_true", help="write the table into docs/performance.md")
    arguments = parser.parse_args()
    arguments.cases = arguments.cases.split(",")
    if unknown := [case for case in arguments.cases if case not in CASES]:
        parser.error(f"--cases: {unknown[0]} (expected {', '.join(CASES)})")
    if os.cpu_count() < 2:
        sys.exit("bench/scale: needs two cores")
    # 1 MiB: a run of some seconds has enough responses to count.
    arguments.bulk, arguments.requests, arguments.handshakes = 1 << 20, 0, 0
    files = "/dev/shm" if shutil.disk_usage("/dev/shm").free > 1 << 28 else None
    with tempfile.TemporaryDirectory() as scratch, tempfile.TemporaryDirectory(dir=files) as files:
        run(arguments, Bench(arguments, scratch, files))


if __name__ == "__main__":
    main()
