//! Sets of characters: `tr`, `delete`, `squeeze`, `count`.

use super::need_strs;
use crate::methods::call::Call;
use crate::names::M;
use crate::value::Value;
use crate::value::exception::{Eval, argument_error};
use crate::value::text::Text;
use crate::vm::Vm;
use std::rc::Rc;

/// `a-z`, `^0-9`, `\\-`: the characters, and whether the set is their complement.
struct Set {
    negated: bool,
    chars: Vec<char>,
}

impl Set {
    fn new(text: &str) -> Eval<Set> {
        let mut list: Vec<(char, bool)> = Vec::new();
        let mut chars = text.chars().peekable();
        let negated = text.chars().count() > 1 && text.starts_with('^');
        if negated {
            chars.next();
        }
        while let Some(c) = chars.next() {
            match c {
                '\\' if chars.peek().is_some() => list.push((chars.next().unwrap_or('\\'), true)),
                c => list.push((c, false)),
            }
        }
        let mut out = Vec::new();
        let mut at = 0;
        while at < list.len() {
            let from = list[at].0;
            if let (Some(('-', false)), Some((to, _))) = (list.get(at + 1), list.get(at + 2)) {
                if from > *to {
                    return Err(argument_error(format!(
                        "invalid range \"{from}-{to}\" in string transliteration"
                    )));
                }
                out.extend(from..=*to);
                at += 3;
            } else {
                out.push(from);
                at += 1;
            }
        }
        Ok(Set {
            negated,
            chars: out,
        })
    }

    fn has(&self, c: char) -> bool {
        self.chars.contains(&c) != self.negated
    }
}

fn sets(args: &[Value]) -> Eval<Vec<Set>> {
    need_strs(args)?.iter().map(|text| Set::new(text)).collect()
}

pub(in crate::methods) fn call(_: &mut Vm, text: &Rc<Text>, call: Call<'_, '_>) -> Eval {
    let Call { method, args, .. } = call;
    let it = text.get();
    let s: &str = &it;
    Ok(match method {
        M::Count => {
            let sets = sets(args)?;
            Value::size(
                s.chars()
                    .filter(|c| sets.iter().all(|set| set.has(*c)))
                    .count(),
            )
        }
        M::Delete | M::Tr if s.is_empty() => Value::str(""),
        M::Delete => {
            let sets = sets(args)?;
            Value::str(
                s.chars()
                    .filter(|c| !sets.iter().all(|set| set.has(*c)))
                    .collect::<String>(),
            )
        }
        M::Squeeze => {
            let sets = sets(args)?;
            let mut out = String::new();
            for c in s.chars() {
                if !(out.ends_with(c) && sets.iter().all(|set| set.has(c))) {
                    out.push(c);
                }
            }
            Value::str(out)
        }
        M::Tr => {
            let texts = need_strs(args)?;
            Value::str(tr(s, &texts[0], &texts[1])?)
        }
        _ => return Err(call.unknown()),
    })
}

fn tr(s: &str, from: &str, to: &str) -> Eval<String> {
    let from = Set::new(from)?;
    let to = match to.strip_prefix('^') {
        Some(rest) => Set::new(&format!("\\^{rest}"))?.chars,
        None => Set::new(to)?.chars,
    };
    let mut out = String::with_capacity(s.len());
    for c in s.chars() {
        if !from.has(c) {
            out.push(c);
            continue;
        }
        let place = if from.negated {
            usize::MAX
        } else {
            from.chars.iter().position(|known| *known == c).unwrap_or(0)
        };
        out.extend(to.get(place).or(to.last()));
    }
    Ok(out)
}
