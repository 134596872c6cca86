"""niquests: requests with HTTP/3 by qh3, which is aioquic's heir with its cryptography in Rust."""

from . import Peer, package, python


class Niquests(Peer):
    name = "niquests"
    modes = {"plain", "many", "separate"}
    features = {"ipv6", "mtu"}

    def version(self):
        found, under = package("niquests"), package("qh3")
        return found and under and f"{found}, {under}"

    def fetch(self, ask):
        python(ask, "niquests_get.py")


PEER = Niquests()
