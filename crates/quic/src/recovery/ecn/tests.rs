use lastbyte_wire::VarInt;

use super::*;

fn counts(ect0: u32, ect1: u32, ce: u32) -> EcnCounts {
    EcnCounts {
        ect0: VarInt::from_u32(ect0),
        ect1: VarInt::from_u32(ect1),
        ce: VarInt::from_u32(ce),
    }
}

/// A path on which this many packets were sent in the application space, marked as ECN validation requested.
fn sent(count: usize) -> EcnValidation {
    let mut ecn = EcnValidation::new();
    for _ in 0..count {
        let codepoint = ecn.codepoint();
        ecn.on_sent(2, codepoint);
    }
    ecn
}

#[test]
fn rfc9000_a_4_marks_ten_packets_then_waits_for_acknowledgments() {
    let mut ecn = sent(9);
    assert_eq!(
        (ecn.state(), ecn.codepoint()),
        (EcnState::Testing, Ecn::Ect0)
    );
    ecn.on_sent(2, Ecn::Ect0);
    assert_eq!(
        (ecn.state(), ecn.codepoint()),
        (EcnState::Unknown, Ecn::NotEct)
    );
    assert_eq!(ecn.on_ack(2, 2, Some(&counts(2, 0, 0))), 0);
    assert_eq!(
        (ecn.state(), ecn.codepoint()),
        (EcnState::Capable, Ecn::Ect0)
    );
}

#[test]
fn rfc9000_13_4_2_1_ce_counts_as_ect0_and_is_reported() {
    let mut ecn = sent(10);
    assert_eq!(ecn.on_ack(2, 4, Some(&counts(1, 0, 3))), 3);
    assert_eq!(ecn.on_ack(2, 2, Some(&counts(2, 0, 4))), 1);
    assert_eq!(ecn.state(), EcnState::Capable);
}

#[test]
fn rfc9000_13_4_2_1_counts_may_be_ahead_of_acks_that_were_lost() {
    let mut ecn = sent(10);
    ecn.on_ack(2, 1, Some(&counts(8, 0, 0)));
    assert_eq!(ecn.state(), EcnState::Capable);
}

#[test]
fn rfc9000_13_4_2_1_each_impossible_count_fails_validation() {
    let failing: [(&str, u64, Option<EcnCounts>); 5] = [
        ("bleached: no counts at all", 2, None),
        ("too few", 3, Some(counts(2, 0, 0))),
        ("more than were sent", 3, Some(counts(11, 0, 0))),
        ("more than were sent, with CE", 3, Some(counts(8, 0, 3))),
        ("remarked to ECT(1), never sent", 3, Some(counts(2, 1, 0))),
    ];
    for (why, newly_acked, counts) in failing {
        let mut ecn = sent(10);
        ecn.on_ack(2, newly_acked, counts.as_ref());
        assert_eq!(ecn.state(), EcnState::Failed, "{why}");
        assert_eq!(ecn.codepoint(), Ecn::NotEct);
    }
    let mut ecn = sent(10);
    ecn.on_ack(2, 5, Some(&counts(5, 0, 0)));
    ecn.on_ack(2, 0, Some(&counts(4, 0, 0)));
    assert_eq!(ecn.state(), EcnState::Failed, "counts that fall");
}

#[test]
fn rfc9000_a_4_fails_when_all_marked_packets_are_lost() {
    let mut ecn = sent(10);
    for _ in 0..9 {
        ecn.on_marked_lost();
    }
    assert_eq!(ecn.state(), EcnState::Unknown);
    ecn.on_marked_lost();
    assert_eq!(ecn.state(), EcnState::Failed);
}

#[test]
fn counts_of_the_spaces_are_separate() {
    let mut ecn = EcnValidation::new();
    for space in [0, 0, 1, 2, 2] {
        ecn.on_sent(space, Ecn::Ect0);
    }
    ecn.on_ack(0, 2, Some(&counts(2, 0, 0)));
    ecn.on_ack(2, 2, Some(&counts(2, 0, 0)));
    ecn.on_ack(1, 1, Some(&counts(1, 0, 0)));
    assert_eq!(ecn.state(), EcnState::Capable);
    ecn.on_ack(1, 0, Some(&counts(2, 0, 0)));
    assert_eq!(ecn.state(), EcnState::Failed, "one was sent in that space");
}

#[test]
fn disabled_marks_nothing() {
    assert_eq!(EcnValidation::disabled().codepoint(), Ecn::NotEct);
}

#[test]
fn rfc9331_4_1_a_scalable_sender_marks_ect1_and_validates_its_count() {
    let l4s = || {
        let mut ecn = EcnValidation::for_response(true);
        for _ in 0..10 {
            assert_eq!(ecn.codepoint(), Ecn::Ect1);
            ecn.on_sent(2, Ecn::Ect1);
        }
        ecn
    };
    let mut ecn = l4s();
    assert_eq!(ecn.on_ack(2, 4, Some(&counts(0, 1, 3))), 3);
    assert_eq!(
        (ecn.state(), ecn.codepoint()),
        (EcnState::Capable, Ecn::Ect1)
    );
    assert_eq!(ecn.reported(), [0, 1, 3]);
    // A path that turns ECT(1) into ECT(0) fails validation.
    let mut ecn = l4s();
    ecn.on_ack(2, 4, Some(&counts(4, 0, 0)));
    assert_eq!(ecn.state(), EcnState::Failed);
    // And one that turns ECT(0) into ECT(1).
    let mut ecn = sent(10);
    ecn.on_ack(2, 4, Some(&counts(0, 4, 0)));
    assert_eq!(ecn.state(), EcnState::Failed);
}
