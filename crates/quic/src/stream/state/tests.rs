use super::*;

#[test]
fn rfc9000_3_1_all_transitions_of_a_sending_part() {
    use SendInput::{AllAcked, Data, Fin, Reset, ResetAcked};
    use SendState as S;
    // The next state on Data, Fin, Reset, AllAcked, ResetAcked.
    let sending = Some(S::Send);
    let sent = Some(S::DataSent);
    let reset = Some(S::ResetSent);
    let table = [
        (S::Ready, [sending, sent, reset, None, None]),
        (S::Send, [sending, sent, reset, None, None]),
        (S::DataSent, [sent, sent, reset, Some(S::DataRecvd), None]),
        (S::ResetSent, [None, None, None, None, Some(S::ResetRecvd)]),
        (S::DataRecvd, [None; 5]),
        (S::ResetRecvd, [None; 5]),
    ];
    for (state, row) in table {
        for (input, next) in [Data, Fin, Reset, AllAcked, ResetAcked]
            .into_iter()
            .zip(row)
        {
            assert_eq!(state.after(input), next, "{state:?} on {input:?}");
        }
        assert_eq!(state.is_terminal(), row == [None; 5], "{state:?}");
        assert_eq!(state.sends_data(), row[0].is_some(), "{state:?}");
    }
}

#[test]
fn rfc9000_3_2_all_transitions_of_a_receiving_part() {
    use ReceiveInput::{AllData, Fin, Read, Reset, ResetReported};
    use ReceiveState as R;
    // The next state on Fin, AllData, Reset, Read, ResetReported.
    let known = Some(R::SizeKnown);
    let had = Some(R::DataRecvd);
    let reset = Some(R::ResetRecvd);
    let read = Some(R::DataRead);
    let told = Some(R::ResetRead);
    let table = [
        (R::Recv, [known, None, reset, None, None]),
        (R::SizeKnown, [known, had, reset, None, None]),
        (R::DataRecvd, [had, None, had, read, None]),
        (R::ResetRecvd, [reset, None, reset, None, told]),
        (R::DataRead, [read, None, read, None, None]),
        (R::ResetRead, [told, None, told, None, None]),
    ];
    for (state, row) in table {
        for (input, next) in [Fin, AllData, Reset, Read, ResetReported]
            .into_iter()
            .zip(row)
        {
            assert_eq!(state.after(input), next, "{state:?} on {input:?}");
        }
        let stays = row.iter().flatten().all(|next| *next == state);
        assert_eq!(state.is_terminal(), stays, "{state:?}");
        assert_eq!(state.lacks_data(), matches!(state, R::Recv | R::SizeKnown));
    }
}
