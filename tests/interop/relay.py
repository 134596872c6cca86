"""A UDP relay between a client and the server, which does to packets what its rules say, by a seed.

Every datagram draws the same number of times from the generator of its direction, whatever the rules are, so that one rule
does not change the chance of another. What passes by is looked at as far as it is not encrypted (RFC 8999, RFC 9000 §17,
RFC 9369 §3), so that a case can ask what was really on the wire.
"""

import collections
import dataclasses
import heapq
import random
import select
import socket
import struct
import threading
import time

VERSION_1, VERSION_2 = 0x00000001, 0x6B3343CF
TYPES = {
    VERSION_1: ("initial", "0-rtt", "handshake", "retry"),
    VERSION_2: ("retry", "initial", "0-rtt", "handshake"),
}
CE, ECT0 = 0b11, 0b10
IPV6_RECVTCLASS, IPV6_TCLASS, IP_RECVTOS = 66, 67, 13


@dataclasses.dataclass(frozen=True)
class Rules:
    """What happens to packets; of both directions, unless the name says otherwise."""

    delay_ms: float = 0
    loss: float = 0
    corruption: float = 0
    in_a_row: int = 3  # how many packets of a flow and direction are lost or corrupted in a row at most
    duplication: float = 0
    congestion_marks: float = 0  # of those that are ECN-capable, how many get CE
    size_max: int = 65_535  # longer ones vanish, once so many datagrams of the server passed:
    size_max_from: int = 0
    silent_from: int = -1  # datagrams of the server; then nothing passes for so long:
    silent_ms: float = 2000
    rebind: str = ""  # "port" or "address": a new one towards the server, each time so many datagrams of the server passed:
    rebind_every: int = 200
    rebinds: int = 3


class Flow:
    """One address of a client."""

    def __init__(self, client):
        self.client = client
        self.upstream = None
        self.hurt_in_a_row = {"client": 0, "server": 0}
        self.uses = []  # for each address towards the server: how many datagrams came back to it
        self.is_validated = False
        self.from_client = self.from_server = 0
        self.amplification = 0.0


class Relay:
    """Runs in a thread of its own from `start` to `stop`."""

    def __init__(self, server, rules, seed):
        self.family = socket.AF_INET6 if ":" in server[0] else socket.AF_INET
        self.server, self.rules = server, rules
        self.chance = {name: random.Random(f"{seed}/{name}") for name in ("client", "server")}
        self.seen = {"client": collections.Counter(), "server": collections.Counter()}
        self.versions = {"client": collections.Counter(), "server": collections.Counter()}
        self.ecn = {"client": collections.Counter(), "server": collections.Counter()}
        self.fates = collections.Counter()
        self.handshakes = collections.Counter()  # bytes of the server's Initial and Handshake datagrams, by connection
        self.flows, self.upstreams, self.due = {}, {}, []
        self.order = self.from_server = self.rebound = 0
        self.silent_until = None
        self.front = self._socket(server[0])
        self.port = self.front.getsockname()[1]
        self.wake, self.woken = socket.socketpair()
        self.poll = select.poll()
        for sock in (self.front, self.woken):
            self.poll.register(sock, select.POLLIN)
        self.thread = threading.Thread(target=self._run, daemon=True)

    def start(self):
        self.thread.start()
        return self

    def stop(self):
        self.wake.send(b".")
        self.thread.join()
        for sock in [self.front, self.wake, self.woken, *(up for up, _, _ in self.upstreams.values())]:
            sock.close()

    def _socket(self, host):
        sock = socket.socket(self.family, socket.SOCK_DGRAM)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 8 << 20)
        if self.family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, IPV6_RECVTCLASS, 1)
        else:
            sock.setsockopt(socket.IPPROTO_IP, IP_RECVTOS, 1)
        sock.bind((host, 0))
        sock.setblocking(False)
        return sock

    def _bind(self, flow):
        """A new address towards the server."""
        host = self.server[0]
        if self.rules.rebind == "address" and flow.uses:
            host = f"127.0.0.{len(flow.uses) + 1}"
        sock = self._socket(host)
        sock.connect(self.server)
        flow.upstream = sock
        flow.uses.append(0)
        self.upstreams[sock.fileno()] = (sock, flow, len(flow.uses) - 1)
        self.poll.register(sock, select.POLLIN)

    def _run(self):
        while True:
            wait = None
            if self.due:
                wait = max(0, (self.due[0][0] - time.monotonic()) * 1000)
            for fd, _ in self.poll.poll(wait):
                if fd == self.woken.fileno():
                    return
                self._receive(fd)
            now = time.monotonic()
            while self.due and self.due[0][0] <= now:
                _, _, sock, to, data, tos = heapq.heappop(self.due)
                self._send(sock, to, data, tos)

    def _receive(self, fd):
        sock, flow, use = (self.front, None, 0) if fd == self.front.fileno() else self.upstreams[fd]
        for _ in range(64):
            try:
                data, notes, _, address = sock.recvmsg(65_535, 64)
            except BlockingIOError:
                return
            except OSError:  # ICMP error of an earlier datagram
                continue
            tos = 0
            for level, kind, value in notes:
                if (level, kind) in ((socket.IPPROTO_IP, socket.IP_TOS), (socket.IPPROTO_IPV6, IPV6_TCLASS)):
                    tos = value[0]
            if flow is None:
                found = self.flows.get(address)
                if found is None:
                    found = self.flows[address] = Flow(address)
                    self._bind(found)
                self._look("client", found, data, tos)
                self._pass("client", found, found.upstream, None, data, tos)
            else:
                flow.uses[use] += 1
                self._look("server", flow, data, tos)
                self._count(flow)
                self._pass("server", flow, self.front, flow.client, data, tos)

    def _count(self, flow):
        self.from_server += 1
        rules = self.rules
        if self.from_server == rules.silent_from:
            self.silent_until = time.monotonic() + rules.silent_ms / 1000
        if rules.rebind and self.rebound < rules.rebinds and self.from_server % rules.rebind_every == 0:
            self.rebound += 1
            self._bind(flow)

    def _pass(self, side, flow, sock, to, data, tos):
        chance, rules = self.chance[side], self.rules
        loss, corruption, duplication, mark = (chance.random() for _ in range(4))
        place = chance.randrange(1 << 30)
        now = time.monotonic()
        may_be_hurt = flow.hurt_in_a_row[side] < rules.in_a_row
        is_hurt = may_be_hurt and (loss < rules.loss or corruption < rules.corruption)
        flow.hurt_in_a_row[side] = flow.hurt_in_a_row[side] + 1 if is_hurt else 0
        if may_be_hurt and loss < rules.loss:
            self.fates["lost"] += 1
            return
        if self.silent_until is not None and now < self.silent_until:
            self.fates["lost in silence"] += 1
            return
        if len(data) > rules.size_max and self.from_server >= rules.size_max_from:
            self.fates["too long"] += 1
            return
        if may_be_hurt and corruption < rules.corruption and data:
            data = bytearray(data)
            data[place % len(data)] ^= 1 << (place >> 16) % 8
            self.fates["corrupted"] += 1
        if mark < rules.congestion_marks and tos & 0b11:
            tos |= CE
            self.fates["marked"] += 1
        copies = 1
        if duplication < rules.duplication:
            copies = 2
            self.fates["duplicated"] += 1
        for _ in range(copies):
            if rules.delay_ms:
                self.order += 1
                heapq.heappush(self.due, (now + rules.delay_ms / 1000, self.order, sock, to, data, tos))
            else:
                self._send(sock, to, data, tos)

    def _send(self, sock, to, data, tos):
        kind = (socket.IPPROTO_IPV6, IPV6_TCLASS) if self.family == socket.AF_INET6 else (socket.IPPROTO_IP, socket.IP_TOS)
        notes = [(*kind, struct.pack("i", tos & 0b11))] if tos & 0b11 else []
        try:
            sock.sendmsg([data], notes, 0, to) if to else sock.sendmsg([data], notes)
        except OSError:  # buffer full or port closed: dropped, as on any path
            self.fates["not sent"] += 1

    def _look(self, side, flow, data, tos):
        self.ecn[side][tos & 0b11] += 1
        kinds = list(packets(data))
        for kind, version in kinds:
            self.seen[side][kind] += 1
            if version is not None:
                self.versions[side][version] += 1
        if side == "client":
            flow.from_client += len(data)
            # RFC 9000 §8.1: a Handshake packet shows that the client is where it says.
            flow.is_validated |= any(kind == "handshake" for kind, _ in kinds)
        else:
            if kinds and kinds[0][0] in ("initial", "handshake"):
                # By the client's connection ID: several connections can have one address.
                self.handshakes[flow.client, bytes(data[6 : 6 + data[5]])] += len(data)
            flow.from_server += len(data)
            if not flow.is_validated and flow.from_client:
                flow.amplification = max(flow.amplification, flow.from_server / flow.from_client)


def packets(data):
    """Kind and version of each packet in a datagram."""
    while data:
        if not data[0] & 0x80:
            # Without the fixed bit it is padding behind the last packet.
            if data[0] & 0x40:
                yield "short", None
            return
        if len(data) < 7:
            return
        version = int.from_bytes(data[1:5], "big")
        if version == 0:
            yield "version negotiation", None
            return
        kinds = TYPES.get(version)
        if kinds is None:
            yield "unknown version", version
            return
        kind = kinds[data[0] >> 4 & 0b11]
        yield kind, version
        if kind == "retry":
            return
        try:
            at = 6 + data[5]
            at += 1 + data[at]
            if kind == "initial":
                length, at = varint(data, at)
                at += length
            length, at = varint(data, at)
        except IndexError:
            return
        data = data[at + length :]


def varint(data, at):
    """RFC 9000 §16: value, and where it ends."""
    length = 1 << (data[at] >> 6)
    value = int.from_bytes(data[at : at + length], "big") & (1 << 8 * length - 2) - 1
    return value, at + length
