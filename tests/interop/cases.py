"""The cases: the options of the server, the faults of the path, what is fetched, and what the server must log.

Named as in the QUIC interop runner where it has them. That all files come whole is checked for every case; `check` is for
what makes the case what it is, from what the relay saw and what the server wrote.
"""

import dataclasses
import json
import os
import sys
import typing

from relay import VERSION_1, VERSION_2, Rules


class Failed(Exception):
    """A case did not go as it must."""


def skip(name):
    """A peer is not installed: a line that says so. With CI set, where `.ci/install` installs all of them, the run ends."""
    if os.environ.get("CI"):
        sys.exit(f"cannot run: {name} is not installed (with CI set, peers are not skipped)")
    line = f"skipped: {name} is not installed"
    print(line)
    return line


def nothing_more(seen):
    """That all files came is enough."""


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    about: str
    files: typing.Sequence[str]
    mode: str = "plain"  # what the peer is asked for, see peers/__init__.py
    check: typing.Callable = nothing_more
    server: typing.Sequence[str] = ()
    rules: Rules = Rules()
    host: str = "127.0.0.1"
    long_chain: bool = False
    needs: str = ""  # what a peer must offer; by itself, what the mode needs
    seconds: float = 90


@dataclasses.dataclass
class Seen:
    """What a case left behind."""

    relay: object
    server: object
    case: Case


def need(condition, reason):
    if not condition:
        raise Failed(reason)


def one_connection(seen):
    need(seen.server.connections == 1, f"{seen.server.connections} connections in place of 1")


def retried(seen):
    need(seen.relay.seen["server"]["retry"] >= 1, "the server sent no Retry")


def resumed(seen):
    """The nine certificates go once, not twice."""
    need(seen.server.connections == 2, f"{seen.server.connections} connections in place of 2")
    lengths = list(seen.relay.handshakes.values())
    need(len(lengths) == 2, f"{len(lengths)} handshakes on the wire in place of 2")
    first, second = lengths
    need(first > 6000, f"the server sent {first} bytes only in the first handshake")
    need(second < 4000, f"the server sent {second} bytes in the second handshake, so with certificates")


def early(seen):
    resumed(seen)
    need(seen.relay.seen["client"]["0-rtt"], "the client sent no 0-RTT")
    need(seen.server.early, "the server took no request as 0-RTT")


def keys_updated(seen):
    """Of the server's own qlog: key updates are logged with their trigger."""
    for path in seen.server.qlogs.iterdir():
        for line in path.read_text().split("\x1e"):
            if line.strip() and "key_updated" in line:
                data = json.loads(line).get("data", {})
                if data.get("trigger") in ("remote_update", "local_update") or data.get("key_phase", 0) > 0:
                    return
    raise Failed("the server saw no key update")


def negotiated(seen):
    need(seen.relay.seen["server"]["version negotiation"], "the server sent no Version Negotiation")


def version_2(seen):
    need(seen.relay.versions["client"][VERSION_1], "the client did not begin with version 1")
    need(seen.relay.versions["server"][VERSION_2], "the server did not change to version 2")
    need(seen.relay.versions["client"][VERSION_2], "the client did not follow to version 2")


def moved(seen):
    """The server must send most of the file to where the client went."""
    # A client that moves has a flow for each address; if the relay moves it, one flow has several, and a connection that a browser
    # opens meanwhile has no part in it.
    flows = list(seen.relay.flows.values())
    flows = [flow for flow in flows if len(flow.uses) > 1] or flows
    used = [count for flow in flows for count in flow.uses if count]
    need(len(used) > 1, "the client did not change its address")
    need(used[-1] > 50, f"the server sent {used[-1]} datagrams only to the last address")
    # A line is written when the first response is through: a browser's is a page, before anything moved.
    if any(line["content_length"] > 1 << 20 for line in seen.server.lines):
        need(seen.server.total("num-frames-sent.path_challenge"), "the server did not validate the new path")
        need(seen.server.total("num-paths.promoted"), "the server did not change to the new path")
    one_connection(seen)


def ecn(seen):
    need(seen.relay.ecn["client"][0b10], "the client sent nothing with ECT(0)")
    need(seen.relay.ecn["server"][0b10], "the server sent nothing with ECT(0)")
    need(seen.server.total("num-packets.received-ecn-ect0"), "the server saw no ECT(0)")
    need(seen.server.total("num-packets.acked-ecn-ce"), "the server heard of no CE")
    need(seen.server.total("num-paths.ecn-validated"), "the server did not validate ECN")
    need(not seen.server.total("num-paths.ecn-failed"), "the server's validation of ECN failed")


def hurt(what):
    def check(seen):
        need(seen.relay.fates[what], f"the relay had no packet {what}")

    return check


def all_connections(what):
    def check(seen):
        hurt(what)(seen)
        need(seen.server.requests >= 50, f"{seen.server.requests} requests in place of 50")

    return check


def frugal(seen):
    for flow in seen.relay.flows.values():
        need(flow.amplification <= 3, f"the server sent {flow.amplification:.2f} times what it got")
    most = max(flow.amplification for flow in seen.relay.flows.values())
    need(most > 2, f"the limit was not tried: {most:.2f} times")


SMALL = tuple(f"m/{number:04}" for number in range(1999))
FIFTY = SMALL[:50]
LOSSY = {"seconds": 120}

CASES = [
    Case("handshake", "one small file", ["1k"], check=one_connection),
    Case("http3", "files of several sizes on one connection", ["1k", "100k", "500k", "index.html"], check=one_connection),
    Case("transfer", "20 MB", ["20m"], check=one_connection),
    Case("multiplexing", "1 999 small files", SMALL, mode="many", seconds=60),
    Case("page", "a page with 100 pictures, as a browser shows it", ["gallery.html"], mode="gallery", seconds=60),
    Case("retry", "`--retry always`", ["100k"], check=retried, server=["--retry", "always"]),
    Case("resumption", "a second connection without certificates", ["1k", "100k"], "resume", resumed, long_chain=True),
    Case("0-rtt", "a request before the handshake", ["1k", "100k"], "early", early, long_chain=True),
    Case("chacha20", "no other cipher offered", ["100k"], "chacha20"),
    Case("key-update", "keys are changed by the client", ["500k", "100k"], "key-update", keys_updated),
    Case("version-negotiation", "the client starts with an unknown version", ["100k"], "negotiate", negotiated),
    Case("version-2", "`--quic-version 2,1`, the client begins with 1", ["100k"], "v2", version_2,
         server=["--quic-version", "2,1"]),
    Case("ipv6", "over ::1", ["100k"], check=one_connection, host="::1", needs="ipv6"),
    Case("ecn", "2 % of packets marked CE", ["1m"], check=ecn, rules=Rules(congestion_marks=0.02, delay_ms=2), needs="ecn"),
    Case("migration", "the client changes its address", ["20m"], "migrate", moved, rules=Rules(delay_ms=3)),
    Case("rebinding-port", "the client's port changes three times", ["5m"], check=moved,
         rules=Rules(rebind="port", delay_ms=2)),
    Case("rebinding-address", "the client's address changes three times", ["5m"], check=moved,
         rules=Rules(rebind="address", delay_ms=2)),
    Case("handshake-loss", "50 connections, 30 % of packets lost", FIFTY, "separate", all_connections("lost"),
         rules=Rules(loss=0.3, delay_ms=5), **LOSSY),
    Case("handshake-corruption", "50 connections, 30 % of packets corrupted", FIFTY, "separate",
         all_connections("corrupted"), rules=Rules(corruption=0.3, delay_ms=5), **LOSSY),
    Case("transfer-loss", "2 MB, 2 % of packets lost", ["2m"], check=hurt("lost"),
         rules=Rules(loss=0.02, delay_ms=10), seconds=60),
    Case("transfer-corruption", "2 MB, 2 % of packets corrupted, 2 % doubled", ["2m"], check=hurt("corrupted"),
         rules=Rules(corruption=0.02, duplication=0.02, delay_ms=10), seconds=60),
    Case("blackhole", "nothing passes for 2 s", ["5m"], check=hurt("lost in silence"),
         rules=Rules(silent_from=500, delay_ms=10), seconds=60),
    Case("mtu-blackhole", "what is longer than 1250 bytes vanishes after 500 packets", ["2m"], check=hurt("too long"),
         rules=Rules(size_max=1250, size_max_from=500, delay_ms=5), needs="mtu", seconds=60),
    Case("long-rtt", "750 ms one way", ["100k"], check=one_connection, rules=Rules(delay_ms=750), seconds=60),
    Case("amplification", "nine certificates, no more than three times what came", ["1k"], check=frugal,
         rules=Rules(delay_ms=20), server=["--retry", "never"], long_chain=True),
]
