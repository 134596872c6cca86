# Helpers for logs of QUIC connections by H2O and Lastbyte: `lastbyte query -r h2o`.

# Whether a connection took part in the comparison of startups: it was paced, it could have used a jumpstart, no earlier
# connection had left it a rate, and its response has a size in bytes of at least `from` and less than `to`.
def base_cond(row, from = 0, to = Float::INFINITY)
  row["num-jumpstart-applicable"] == 1 && row["num-paced"] == 1 && row["jumpstart.prev-rate"] == 0 &&
    row["content_length"] >= from && row["content_length"] < to
end

# The arm of a connection: of a line of Lastbyte's, the arm that it names; else the startup by H2O's flags, by the names of
# `lastbyte report`.
def group_name(row)
  return row["arm"] if row["arm"]
  jumped = row["jumpstart.cwnd"] > 0
  if row["num-rapid-start"] == 0
    jumped ? "jumpstart" : "slow-start"
  else
    jumped ? "rapid-start" : "rapid-no-jump"
  end
end

# The share of packets that were lost, or nil if none was sent.
def loss_ratio(row)
  sent = row["num-packets.sent"]
  row["num-packets.lost"].to_f / sent if sent > 0
end
