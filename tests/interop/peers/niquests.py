"""niquests: requests with HTTP/3 by qh3, which is aioquic's heir with its cryptography in Rust."""

from . import Peer, package, python


class Niquests(Peer):
    name = "niquests"
    modes = {"plain", "many", "separate"}
    features = {"ipv6", "mtu"}
    why_not = {
        case: "niquests ends with ConnectionResetError over such a path with quinn's server too, and with quic-go's where packets are lost"
        for case in ("handshake-loss", "handshake-corruption")
    } | {"multiplexing": "niquests stops reading its socket now and then, and acknowledges not even PING; with quinn's server it took 68 s"}

    def version(self):
        found, under = package("niquests"), package("qh3")
        return found and under and f"{found}, {under}"

    def fetch(self, ask):
        python(ask, "niquests_get.py")


PEER = Niquests()
