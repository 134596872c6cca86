"""quinn with h3: `p_quinn` of tests/peers, in the folder `$INTEROP_PEERS`."""

from .quic_go import Program


class Quinn(Program):
    name = "quinn"
    program = "p_quinn"
    features = {"mtu", "ecn"}


PEER = Quinn()
