"""ngtcp2's own client, as Debian packages it. It ends with 0 whatever happened: only the files count.
Its version 2 is that of a draft."""

import shutil
import subprocess

from . import Peer, command, separately

CHACHA20 = "NORMAL:-VERS-ALL:+VERS-TLS1.3:-CIPHER-ALL:+CHACHA20-POLY1305"


class Gtlsclient(Peer):
    name = "gtlsclient"
    modes = {"plain", "many", "separate", "resume", "early", "chacha20", "key-update", "negotiate", "migrate"}
    features = {"mtu", "ipv6", "ecn"}

    def version(self):
        if not shutil.which("gtlsclient"):
            return None
        done = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", "ngtcp2-client"], capture_output=True, text=True)
        return f"ngtcp2 {done.stdout or 'of unknown version'}"

    def fetch(self, ask):
        if ask.mode == "separate":
            return separately(ask, self.fetch)
        session = ["--session-file", str(ask.folder.parent / "session"), "--tp-file", str(ask.folder.parent / "parameters")]
        if ask.mode in ("resume", "early"):
            late = ["--disable-early-data"] if ask.mode == "resume" else []
            self._get(ask, ask.paths[:1], session)
            return self._get(ask, ask.paths[1:], session + late)
        flags = {
            "chacha20": ["--ciphers=" + CHACHA20],
            "key-update": ["--key-update=1ms"],
            "negotiate": ["-v", "0x1a2a3a4a", "--preferred-versions=v1"],
            "migrate": ["--change-local-addr=20ms"],
        }
        self._get(ask, ask.paths, flags.get(ask.mode, []))

    @staticmethod
    def _get(ask, paths, flags):
        limits = [f"--timeout={ask.seconds:g}s", f"--handshake-timeout={ask.seconds:g}s"]
        urls = [f"https://localhost:{ask.port}/{path}" for path in paths]
        command(ask, ["gtlsclient", "-q", "--exit-on-all-streams-close", f"--download={ask.folder}", *limits, *flags,
                      ask.host, str(ask.port), *urls])


PEER = Gtlsclient()
