"""quinn with h3, by a small program of ours around them; `$INTEROP_PEERS` is the folder where `p_quinn` is."""

from .quic_go import Program


class Quinn(Program):
    name = "quinn"
    program = "p_quinn"
    features = {"mtu", "ecn"}


PEER = Quinn()
