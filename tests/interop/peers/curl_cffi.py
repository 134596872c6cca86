"""curl_cffi: libcurl with BoringSSL and ngtcp2, as it pretends to be a browser."""

from . import Peer, package, python


class CurlCffi(Peer):
    name = "curl_cffi"
    modes = {"plain", "many", "separate"}
    features = {"mtu", "ipv6"}

    def version(self):
        return package("curl_cffi")

    def fetch(self, ask):
        python(ask, "curl_cffi_get.py")


PEER = CurlCffi()
