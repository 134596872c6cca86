use super::*;

#[test]
fn a_write_that_does_not_fit_changes_nothing() {
    let mut buffer = [0xee; 4];
    let mut writer = Writer::new(&mut buffer);
    writer.u8(1).expect("fits");
    assert_eq!(writer.u32(2), Err(BufferFull));
    assert_eq!(writer.varint(VarInt::MAX), Err(BufferFull));
    assert_eq!(writer.bytes(&[0; 4]), Err(BufferFull));
    assert_eq!(writer.zeros(usize::MAX), Err(BufferFull));
    assert_eq!(writer.varint_prefixed(&[7; 3]), Err(BufferFull));
    assert_eq!((writer.position(), writer.remaining()), (1, 3));
    writer.varint_prefixed(&[7; 2]).expect("fits");
    assert_eq!(writer.written(), [1, 2, 7, 7]);
    assert_eq!(writer.u8(0), Err(BufferFull));
}

#[test]
fn atomically_undoes_what_was_written_before_the_failure() {
    let mut buffer = [0; 4];
    let mut writer = Writer::new(&mut buffer);
    writer.u8(9).expect("fits");
    let result = writer.atomically(|writer| {
        writer.u16(1)?;
        writer.u16(2)
    });
    assert_eq!(result, Err(BufferFull));
    assert_eq!(writer.written(), [9]);
}

#[test]
fn rewind_never_goes_forward() {
    let mut buffer = [0; 4];
    let mut writer = Writer::new(&mut buffer);
    writer.u16(1).expect("fits");
    writer.rewind(3);
    assert_eq!(writer.position(), 2);
    writer.rewind(1);
    assert_eq!(writer.written(), [0]);
    assert_eq!(writer.overwrite(0, &[5, 6]), Err(BufferFull));
    writer.overwrite(0, &[5]).expect("one byte is written");
    assert_eq!(writer.written_mut(), [5]);
}
