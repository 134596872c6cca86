"""aioquic: QUIC and HTTP/3 in Python."""

from . import Peer, package, python


class Aioquic(Peer):
    name = "aioquic"
    modes = {"plain", "many", "separate", "resume", "early", "chacha20", "key-update", "negotiate", "v2", "migrate"}
    features = {"ipv6"}

    def version(self):
        return package("aioquic")

    def fetch(self, ask):
        python(ask, "aioquic_get.py")


PEER = Aioquic()
