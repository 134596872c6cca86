#!/usr/bin/env python3
"""aioquic as an HTTP/3 server. `/<n>[k|m|g]` has that many bytes; TLS names the folder with cert.pem and key.pem.

usage: aioquic_server.py PORT
"""
import asyncio, os, sys
from aioquic.asyncio import QuicConnectionProtocol, serve
from aioquic.h3.connection import H3Connection
from aioquic.h3.events import HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.tls import SessionTicket

T = os.environ["TLS"]
tickets = {}


def size(p):
    p = p.strip("/")
    m = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30}.get(p[-1:], 1)
    return int(p.rstrip("kmg") or 0) * m


class P(QuicConnectionProtocol):
    h = None

    def quic_event_received(self, e):
        if self.h is None:
            self.h = H3Connection(self._quic)
        for x in self.h.handle_event(e):
            if isinstance(x, HeadersReceived):
                n = size(dict(x.headers)[b":path"].decode())
                self.h.send_headers(x.stream_id, [(b":status", b"200"), (b"content-length", str(n).encode())])
                self.h.send_data(x.stream_id, b"x" * n, True)
                self.transmit()


async def main():
    c = QuicConfiguration(is_client=False, alpn_protocols=["h3"], max_data=64 << 20)
    c.load_cert_chain(T + "/cert.pem", T + "/key.pem")
    await serve("127.0.0.1", int(sys.argv[1]), configuration=c, create_protocol=P,
                session_ticket_fetcher=lambda l: tickets.pop(l, None), session_ticket_handler=lambda t: tickets.__setitem__(t.ticket, t))
    await asyncio.Future()

asyncio.run(main())
