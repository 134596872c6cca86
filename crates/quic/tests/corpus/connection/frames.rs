//! Bytes as a source of choices, and frames made of them: any type, any values, most of them near a border.

/// Bytes that are taken one after the other; zeros once there are no more.
pub(crate) struct Input<'a> {
    bytes: &'a [u8],
}

impl<'a> Input<'a> {
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub(crate) fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.bytes.split_first() else {
            return 0;
        };
        self.bytes = rest;
        *first
    }

    /// A value of a variable-length integer.
    fn value(&mut self) -> u64 {
        const BORDERS: [u64; 16] = [
            63,
            64,
            1199,
            1200,
            16_383,
            16_384,
            32 << 10,
            64 << 10,
            (64 << 10) + 1,
            (1 << 30) - 1,
            1 << 30,
            1 << 32,
            1 << 60,
            (1 << 60) + 1,
            (1 << 62) - 2,
            (1 << 62) - 1,
        ];
        match self.byte() {
            small @ 0..224 => u64::from(small),
            224..240 => u64::from(self.byte()) << 8 | u64::from(self.byte()),
            border => BORDERS[usize::from(border & 15)],
        }
    }

    fn data(&mut self) -> &'a [u8] {
        let len = usize::from(self.byte()).min(self.bytes.len());
        let (data, rest) = self.bytes.split_at(len);
        self.bytes = rest;
        data
    }
}

fn varint(out: &mut Vec<u8>, value: u64) {
    match value {
        0..64 => out.push(value as u8),
        64..16_384 => out.extend(((value as u16) | 0x4000).to_be_bytes()),
        16_384..0x4000_0000 => out.extend(((value as u32) | 0x8000_0000).to_be_bytes()),
        _ => out.extend((value | 0xc000_0000_0000_0000).to_be_bytes()),
    }
}

/// The layout after a frame's type: a number of integers, then data with its length, then a number of bytes.
const SHAPES: &[(u64, usize, bool, usize)] = &[
    (0x00, 0, false, 0),
    (0x01, 0, false, 0),
    (0x04, 3, false, 0),
    (0x05, 2, false, 0),
    (0x06, 1, true, 0),
    (0x07, 0, true, 0),
    (0x0a, 1, true, 0),
    (0x0b, 1, true, 0),
    (0x0e, 2, true, 0),
    (0x0f, 2, true, 0),
    (0x10, 1, false, 0),
    (0x11, 2, false, 0),
    (0x12, 1, false, 0),
    (0x13, 1, false, 0),
    (0x14, 1, false, 0),
    (0x15, 2, false, 0),
    (0x16, 1, false, 0),
    (0x17, 1, false, 0),
    (0x19, 1, false, 0),
    (0x1a, 0, false, 8),
    (0x1b, 0, false, 8),
    (0x1c, 2, true, 0),
    (0x1d, 1, true, 0),
    (0x1e, 0, false, 0),
    (0x1f, 0, false, 0),
    (0x31, 0, true, 0),
    (0xaf, 4, false, 0),
];

/// A frame.
pub(crate) fn frame(input: &mut Input<'_>, out: &mut Vec<u8>) {
    let kind = input.byte();
    match kind % 32 {
        index @ 0..27 => {
            let (kind, integers, has_data, bytes) = SHAPES[usize::from(index)];
            varint(out, kind);
            for _ in 0..integers {
                let value = input.value();
                varint(out, value);
            }
            if has_data {
                let data = input.data();
                varint(out, data.len() as u64);
                out.extend_from_slice(data);
            }
            for _ in 0..bytes {
                out.push(input.byte());
            }
        }
        27 | 28 => ack(input, out),
        29 => {
            varint(out, 0x18);
            let (number, retire) = (input.value(), input.value());
            varint(out, number);
            varint(out, retire);
            out.push(8);
            // Of two numbers the same ID, now and then.
            let id = input.byte();
            out.extend([id; 8]);
            out.extend([input.byte(); 16]);
        }
        30 => {
            let value = input.value();
            varint(out, value);
        }
        _ => out.extend_from_slice(input.data()),
    }
}

fn ack(input: &mut Input<'_>, out: &mut Vec<u8>) {
    let has_counts = input.byte() & 1 != 0;
    out.push(2 + u8::from(has_counts));
    let (largest, delay) = (input.value(), input.value());
    let (count, first) = (input.byte() % 4, input.value());
    for value in [largest, delay, u64::from(count), first] {
        varint(out, value);
    }
    for _ in 0..2 * count + if has_counts { 3 } else { 0 } {
        let value = input.value();
        varint(out, value);
    }
}
