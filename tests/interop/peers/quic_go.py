"""quic-go: `p_quicgo` of tests/peers, in the folder `$INTEROP_PEERS`."""

import os
import pathlib
import shutil

from cases import Failed

from . import Peer, command, separately


class Program(Peer):
    """A program that has the commands `get ADDR PATH FILE`, `load ADDR PATH N 1 STREAMS`, `hs ADDR PATH N 1 MODE`."""

    program = ""
    modes = {"plain", "many", "separate", "resume", "early"}

    modes_without_files = {"many", "resume", "early"}

    def path(self):
        folder = os.environ.get("INTEROP_PEERS", "")
        return shutil.which(self.program, path=f"{folder}:{os.environ['PATH']}" if folder else None)

    def version(self):
        return self.path() and self.name

    def offers(self, case):
        # One path a connection is all that `get` takes.
        return super().offers(case) and not (case.mode == "plain" and len(case.files) > 1)

    def fetch(self, ask):
        program = self.path()
        if ask.mode == "separate":
            return separately(ask, self.fetch)
        if ask.mode == "plain":
            path = ask.paths[0]
            return command(ask, [program, "get", ask.authority, "/" + path, str(ask.folder / pathlib.Path(path).name)])
        if ask.mode == "many":
            wish = ["load", ask.authority, "/" + ask.paths[0], str(len(ask.paths)), "1", "100"]
            expected = f"reqs={len(ask.paths)} "
        else:
            wish = ["hs", ask.authority, "/" + ask.paths[0], "1", "1", {"resume": "resume", "early": "0rtt"}[ask.mode]]
            expected = "reqs=1 "
        command(ask, [program, *wish])
        if expected not in ask.output.read_text():
            raise Failed(f"its output lacks `{expected}`")


class QuicGo(Program):
    name = "quic-go"
    program = "p_quicgo"
    features = {"mtu", "ipv6", "ecn"}


PEER = QuicGo()
