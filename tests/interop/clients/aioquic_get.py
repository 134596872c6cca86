"""Fetches files with aioquic as described by JSON in its argument; see peers/__init__.py for the modes."""

import asyncio
import dataclasses
import json
import pathlib
import socket
import ssl
import sys

from aioquic.asyncio import QuicConnectionProtocol, connect
from aioquic.h3.connection import H3_ALPN, H3Connection
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.packet import QuicProtocolVersion
from aioquic.tls import CipherSuite

ask = json.loads(sys.argv[1])
folder = pathlib.Path(ask["folder"])
NOBODY_HAS = 0x1A2A3A4A


class Client(QuicConnectionProtocol):
    """One connection."""

    def __init__(self, *arguments, **more):
        super().__init__(*arguments, **more)
        self.http = H3Connection(self._quic)
        self.open = {}
        self.received = 0

    def begin(self, path):
        """Sends a request; the future is the response."""
        stream = self._quic.get_next_available_stream_id()
        headers = {":method": "GET", ":scheme": "https", ":authority": f"localhost:{ask['port']}", ":path": "/" + path}
        self.http.send_headers(stream, [(name.encode(), value.encode()) for name, value in headers.items()], True)
        response = asyncio.get_running_loop().create_future()
        self.open[stream] = (response, path, bytearray(), {})
        return response

    async def get(self, paths, at_a_time=200):
        """All of them, so many at once."""
        for first in range(0, len(paths), at_a_time):
            responses = [self.begin(path) for path in paths[first : first + at_a_time]]
            self.transmit()
            await asyncio.gather(*responses)

    def quic_event_received(self, event):
        if type(event).__name__ == "ConnectionTerminated":
            for response, path, _, _ in self.open.values():
                if not response.done():
                    response.set_exception(RuntimeError(f"closed before {path} came: {event}"))
        for event in self.http.handle_event(event):
            response, path, body, headers = self.open[event.stream_id]
            if isinstance(event, HeadersReceived):
                headers.update(event.headers)
            elif isinstance(event, DataReceived):
                body += event.data
                self.received += len(event.data)
            if getattr(event, "stream_ended", False) and not response.done():
                if headers.get(b":status") != b"200":
                    response.set_exception(RuntimeError(f"status {headers.get(b':status')} for {path}"))
                    continue
                (folder / pathlib.Path(path).name).write_bytes(body)
                response.set_result(None)


def configuration(**more):
    return QuicConfiguration(
        is_client=True, alpn_protocols=H3_ALPN, verify_mode=ssl.CERT_NONE, server_name="localhost",
        max_data=64 << 20, max_stream_data=32 << 20, idle_timeout=ask["seconds"], **more,
    )


def connection(config, **more):
    return connect(ask["host"], ask["port"], configuration=config, create_protocol=Client, **more)


async def until(condition, wait=0.005):
    while not condition():
        await asyncio.sleep(wait)


async def resume(paths, early):
    tickets = []
    async with connection(configuration(), session_ticket_handler=tickets.append) as client:
        await client.get(paths[:1])
        await until(lambda: tickets)
    ticket = tickets[0]
    if not early:
        ticket = dataclasses.replace(ticket, max_early_data_size=None)
    async with connection(configuration(session_ticket=ticket), wait_connected=not early) as client:
        await client.get(paths[1:])
        assert client._quic.tls.session_resumed, "not resumed"
        assert not early or client._quic.tls.early_data_accepted, "0-RTT was not accepted"


async def migrate(paths):
    async with connection(configuration()) as client:
        fetch = asyncio.ensure_future(client.get(paths))
        await until(lambda: client.received > 1 << 20 or fetch.done())
        client.change_connection_id()
        old = client._transport
        # As the first one: of IPv6, for both.
        sock = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        sock.bind(("::", 0))
        await asyncio.get_running_loop().create_datagram_endpoint(lambda: client, sock=sock)
        old.abort()
        await client.ping()
        await fetch


async def one(path, config=None):
    async with connection(config or configuration()) as client:
        await client.get([path])


async def main():
    mode, paths = ask["mode"], ask["paths"]
    if mode in ("resume", "early"):
        await resume(paths, mode == "early")
    elif mode == "migrate":
        await migrate(paths)
    elif mode == "separate":
        turns = asyncio.Semaphore(10)

        async def in_turn(path):
            async with turns:
                await one(path)

        await asyncio.gather(*(in_turn(path) for path in paths))
    else:
        versions = {
            "negotiate": {"original_version": NOBODY_HAS, "supported_versions": [NOBODY_HAS, QuicProtocolVersion.VERSION_1]},
            "v2": {
                "original_version": QuicProtocolVersion.VERSION_1,
                "supported_versions": [QuicProtocolVersion.VERSION_2, QuicProtocolVersion.VERSION_1],
            },
        }
        ciphers = {"cipher_suites": [CipherSuite.CHACHA20_POLY1305_SHA256]} if mode == "chacha20" else {}
        async with connection(configuration(**versions.get(mode, {}), **ciphers)) as client:
            await client.get(paths[:1] if mode == "key-update" else paths)
            if mode == "key-update":
                client.request_key_update()
                await client.get(paths[1:])


asyncio.run(main())
