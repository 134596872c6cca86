use super::*;

/// Each test has a thread, so a pool, of its own.
fn lend_all() -> Vec<Loan> {
    std::iter::from_fn(|| lend(0, BUFFER_LEN, |_| Ok(())))
        .map(|loan| loan.expect("it is filled"))
        .collect()
}

#[test]
fn a_thread_lends_no_more_than_its_buffers() {
    let loans = lend_all();
    assert_eq!(loans.len(), BUFFERS_MAX);
    return_loan(&loans[7]);
    return_loan(&loans[7]);
    assert_eq!(lend_all().len(), 1, "one was returned, once");
    let bytes: usize = POOL.with_borrow(|pool| pool.buffers.iter().map(|b| b.bytes.len()).sum());
    assert_eq!(bytes, BUFFERS_MAX * BUFFER_LEN);
}

#[test]
fn the_buffer_of_a_stalled_response_passes_to_another() {
    let loans = lend_all();
    let mut byte = [0];
    let read = |loan: &Loan, byte: &mut [u8]| copy(loan, 0, byte);
    // All but the first are read from.
    let mut reads = 0;
    for loan in loans[1..].iter().cycle().take(IDLE_READS as usize) {
        assert!(read(loan, &mut byte));
        reads += 1;
    }
    assert!(reads >= IDLE_READS);
    let other = lend_all();
    assert_eq!(other.len(), 1);
    assert!(!read(&loans[0], &mut byte), "it was passed on");
    return_loan(&loans[0]);
    assert!(read(&other[0], &mut byte), "it belongs to the other");
    assert!(loans[1..].iter().all(|loan| read(loan, &mut byte)));
}

#[test]
fn a_loan_is_valid_on_its_thread_only() {
    let fill = |bytes: &mut [u8]| {
        bytes.copy_from_slice(b"0123");
        Ok(())
    };
    let loan = lend(10, 4, fill).expect("a buffer").expect("it is filled");
    let mut bytes = [0; 2];
    assert!(copy(&loan, 12, &mut bytes));
    assert_eq!(&bytes, b"23");
    std::thread::scope(|scope| {
        let elsewhere = scope.spawn(|| {
            // The same index in another pool.
            let other = lend(10, 4, fill).expect("a buffer").expect("it is filled");
            let is_copied = copy(&loan, 12, &mut [0; 2]);
            return_loan(&loan);
            is_copied || !copy(&other, 12, &mut [0; 2])
        });
        assert!(!elsewhere.join().expect("no panic"));
    });
    assert!(copy(&loan, 12, &mut bytes));
}

#[test]
fn a_failed_read_takes_no_buffer() {
    let failed = lend(0, 1, |_| Err(Errno::IO));
    assert_eq!(failed, Some(Err(Errno::IO)));
    assert_eq!(lend_all().len(), BUFFERS_MAX);
}
