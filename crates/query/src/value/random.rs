//! Random numbers: the Mersenne twister with Ruby's seeding, so that a seed gives what Ruby gives. Without a seed the
//! seed is 0: a query's results do not depend on chance.

use super::Value;
use crate::value::exception::Eval;
use crate::value::number::{need_float, need_int};

const N: usize = 624;

pub(crate) struct Random {
    state: Vec<u32>,
    next: usize,
}

impl Random {
    fn from_word(word: u32) -> Random {
        let mut state = vec![0_u32; N];
        state[0] = word;
        for at in 1..N {
            let before = state[at - 1];
            state[at] = 1_812_433_253_u32
                .wrapping_mul(before ^ before >> 30)
                .wrapping_add(at as u32);
        }
        Random { state, next: N }
    }

    fn from_words(key: &[u32]) -> Random {
        let Random { mut state, .. } = Random::from_word(19_650_218);
        let (mut i, mut j) = (1, 0);
        for _ in 0..N.max(key.len()) {
            let before = state[i - 1];
            state[i] = (state[i] ^ (before ^ before >> 30).wrapping_mul(1_664_525))
                .wrapping_add(key[j])
                .wrapping_add(j as u32);
            i += 1;
            j = (j + 1) % key.len();
            if i >= N {
                state[0] = state[N - 1];
                i = 1;
            }
        }
        for _ in 1..N {
            let before = state[i - 1];
            state[i] = (state[i] ^ (before ^ before >> 30).wrapping_mul(1_566_083_941))
                .wrapping_sub(i as u32);
            i += 1;
            if i >= N {
                state[0] = state[N - 1];
                i = 1;
            }
        }
        state[0] = 0x8000_0000;
        Random { state, next: N }
    }

    /// Ruby initializes the state from a seed of one word differently from a longer seed.
    pub(crate) fn seeded(seed: i64) -> Random {
        let size = seed.unsigned_abs();
        let (low, high) = (size as u32, (size >> 32) as u32);
        match high {
            0 => Random::from_word(low),
            _ => Random::from_words(&[low, high]),
        }
    }

    fn word(&mut self) -> u32 {
        if self.next >= N {
            for at in 0..N {
                let mixed =
                    (self.state[at] & 0x8000_0000) | (self.state[(at + 1) % N] & 0x7fff_ffff);
                let odd = if mixed & 1 == 1 { 0x9908_b0df } else { 0 };
                self.state[at] = self.state[(at + 397) % N] ^ mixed >> 1 ^ odd;
            }
            self.next = 0;
        }
        let mut y = self.state[self.next];
        self.next += 1;
        y ^= y >> 11;
        y ^= y << 7 & 0x9d2c_5680;
        y ^= y << 15 & 0xefc6_0000;
        y ^ y >> 18
    }

    fn float(&mut self) -> f64 {
        let (a, b) = (self.word() >> 5, self.word() >> 6);
        (f64::from(a) * 67_108_864.0 + f64::from(b)) / 9_007_199_254_740_992.0
    }

    /// At most `limit`.
    pub(crate) fn limited(&mut self, limit: u64) -> u64 {
        if limit == 0 {
            return 0;
        }
        let mask = u64::MAX >> limit.leading_zeros();
        'again: loop {
            let mut value = 0;
            for half in (0..2).rev() {
                if mask >> (half * 32) & 0xffff_ffff != 0 {
                    value |= u64::from(self.word()) << (half * 32) & mask;
                    if limit < value {
                        continue 'again;
                    }
                }
            }
            return value;
        }
    }
}

/// `rand`, `rand(10)`, `rand(1..6)`, `rand(1.5)`.
pub(crate) fn rand(random: &mut Random, limit: Option<&Value>) -> Eval {
    match limit {
        None | Some(Value::Nil) => Ok(Value::Float(random.float())),
        Some(Value::Float(limit)) => Ok(Value::Float(random.float() * limit)),
        Some(Value::Range(range)) if range.from.is_float() || range.to.is_float() => {
            let (from, to) = (need_float(&range.from)?, need_float(&range.to)?);
            Ok(Value::Float(random.float() * (to - from) + from))
        }
        Some(Value::Range(range)) => {
            let (from, to) = (
                need_int(&range.from)?,
                need_int(&range.to)? - i64::from(range.exclusive),
            );
            if to < from {
                return Ok(Value::Nil);
            }
            Ok(Value::Int(from.wrapping_add(
                random.limited(to.wrapping_sub(from) as u64).cast_signed(),
            )))
        }
        Some(limit) => {
            let limit = need_int(limit)?.unsigned_abs();
            if limit == 0 {
                return Ok(Value::Float(random.float()));
            }
            Ok(Value::Int(random.limited(limit - 1).cast_signed()))
        }
    }
}
