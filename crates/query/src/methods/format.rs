//! `format`: the conversions of C with Ruby's additions, `%<name>d`, `%{name}`, `%2$s`, `%-*s`.

use crate::class::Class;
use crate::memory::Growth;
use crate::names::M;
use crate::value::Value;
use crate::value::exception::{Eval, argument_error, error};
use crate::value::inspect::{inspect, inspect_within, to_s, to_s_within};
use crate::value::number::{big_of, float_of, float_to_s, need_int};
use crate::vm::Vm;
use num_bigint::BigInt;
use num_traits::{Signed, Zero};

/// Maximum width of a field and maximum number of digits, in characters.
const WIDTH_MAX: usize = 1 << 28;

/// Maximum number of nonzero digits after the point, that of 2^-1074.
const PLACES_MAX: usize = 1074;

#[derive(Default)]
struct Spec {
    minus: bool,
    plus: bool,
    space: bool,
    zero: bool,
    sharp: bool,
    width: Option<usize>,
    precision: Option<usize>,
}

impl Spec {
    /// Whether it has no flag, no width and no precision.
    fn is_bare(&self) -> bool {
        let flags = [self.minus, self.plus, self.space, self.zero, self.sharp];
        flags == [false; 5] && self.width.or(self.precision).is_none()
    }
}

struct Arguments<'a> {
    list: &'a [Value],
    next: usize,
    /// How those before were chosen: a format has one way only.
    chosen: Option<&'static str>,
}

impl Arguments<'_> {
    fn choose(&mut self, how: &'static str) -> Eval<()> {
        let before = *self.chosen.get_or_insert(how);
        if before == how {
            return Ok(());
        }
        Err(argument_error(format!("{how} mixed with {before}")))
    }

    fn next(&mut self) -> Eval {
        self.choose("unnumbered")?;
        self.next += 1;
        self.at(self.next)
    }

    fn numbered(&mut self, place: usize) -> Eval {
        self.choose("numbered")?;
        self.at(place)
    }

    fn at(&self, place: usize) -> Eval {
        self.list
            .get(place.wrapping_sub(1))
            .cloned()
            .ok_or_else(|| argument_error("too few arguments"))
    }

    fn named(&mut self, name: &str) -> Eval {
        self.choose("named")?;
        match self.list {
            [Value::Hash(table)] => table
                .get(&Value::symbol(name))
                .ok_or_else(|| error(Class::KeyError, format!("key<{name}> not found"))),
            _ => Err(argument_error("one hash required")),
        }
    }
}

pub(crate) fn format(vm: &mut Vm, pattern: &str, args: &[Value]) -> Eval<String> {
    let mut out = String::new();
    let mut arguments = Arguments {
        list: args,
        next: 0,
        chosen: None,
    };
    let mut chars = pattern.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        let mut spec = Spec::default();
        let mut value: Option<Value> = None;
        loop {
            let Some(c) = chars.next() else {
                return Err(argument_error(
                    "incomplete format specifier; use %% (double %) instead",
                ));
            };
            match c {
                '-' | '+' | ' ' | '0' | '#' if spec.width.or(spec.precision).is_some() => {
                    return Err(argument_error("flag after width"));
                }
                '-' => spec.minus = true,
                '+' => spec.plus = true,
                ' ' => spec.space = true,
                '0' => spec.zero = true,
                '#' => spec.sharp = true,
                '1'..='9' => {
                    let number = digits(c, &mut chars);
                    if chars.peek() == Some(&'$') {
                        chars.next();
                        value = Some(arguments.numbered(number)?);
                    } else {
                        spec.width = Some(number);
                    }
                }
                '*' => {
                    let width = need_int(&arguments.next()?)?;
                    spec.minus |= width < 0;
                    spec.width = Some(width.unsigned_abs() as usize);
                }
                '.' => {
                    spec.precision = Some(match chars.peek() {
                        Some('*') => {
                            chars.next();
                            need_int(&arguments.next()?)?.max(0) as usize
                        }
                        Some(c) if c.is_ascii_digit() => {
                            let c = *c;
                            chars.next();
                            digits(c, &mut chars)
                        }
                        _ => 0,
                    });
                }
                '<' => {
                    let name: String = chars.by_ref().take_while(|c| *c != '>').collect();
                    value = Some(arguments.named(&name)?);
                }
                '{' => {
                    let name: String = chars.by_ref().take_while(|c| *c != '}').collect();
                    let text =
                        to_s_within(&arguments.named(&name)?, Growth::of(&vm.bounds, 0).limit())?;
                    pad(&mut out, &text, &spec)?;
                    break;
                }
                '%' | '\n' | '\0' if !spec.is_bare() => {
                    return Err(argument_error("invalid format character - %"));
                }
                '%' => {
                    out.push('%');
                    break;
                }
                '\n' | '\0' => {
                    out.push('%');
                    out.push(c);
                    break;
                }
                conversion => {
                    if !"diuxXobBeEfgGaAsSpc".contains(conversion) {
                        return Err(argument_error(format!(
                            "malformed format string - %{conversion}"
                        )));
                    }
                    let value = match value {
                        Some(value) => value,
                        None => arguments.next()?,
                    };
                    convert(vm, &mut out, conversion, &value, &mut spec)?;
                    break;
                }
            }
        }
    }
    Ok(out)
}

fn digits(first: char, chars: &mut std::iter::Peekable<std::str::Chars<'_>>) -> usize {
    let mut number = first.to_digit(10).unwrap_or(0) as usize;
    while let Some(digit) = chars.peek().and_then(|c| c.to_digit(10)) {
        number = number.saturating_mul(10).saturating_add(digit as usize);
        chars.next();
    }
    number
}

fn convert(
    vm: &mut Vm,
    out: &mut String,
    conversion: char,
    value: &Value,
    spec: &mut Spec,
) -> Eval<()> {
    match conversion {
        's' | 'p' => {
            if let Value::Token(_) = value {
                return Err(crate::value::exception::no_method("to_s", value));
            }
            let mut text = if conversion == 's' {
                to_s_within(value, Growth::of(&vm.bounds, 0).limit())?
            } else {
                inspect_within(value, Growth::of(&vm.bounds, 0).limit())?
            };
            if let Some(precision) = spec.precision {
                text = text.chars().take(precision).collect();
            }
            spec.zero = false;
            pad(out, &text, spec)
        }
        'c' => {
            let text = match value {
                Value::Str(text) => text
                    .get()
                    .chars()
                    .next()
                    .map(String::from)
                    .unwrap_or_default(),
                code => {
                    let code = Value::Int(need_int(code)?);
                    to_s(&vm.send(&code, M::Chr, &[Value::str("UTF-8")], None)?)
                }
            };
            pad(out, &text, spec)
        }
        'd' | 'i' | 'u' => {
            let it = to_integer(vm, value)?;
            let digits = it.abs().to_string();
            number(out, it.is_negative(), "", &digits, spec)
        }
        'f' if matches!(value, Value::Int(_) | Value::Big(_)) => {
            let it = big_of(value).unwrap_or_default();
            let precision = spec.precision.unwrap_or(6);
            check("precision", precision)?;
            let mut digits = it.abs().to_string();
            if precision > 0 {
                digits.push('.');
            }
            digits.extend(std::iter::repeat_n('0', precision));
            let exact = Spec {
                precision: None,
                ..copy(spec)
            };
            number(out, it.is_negative(), "", &digits, &exact)
        }
        'x' | 'X' | 'o' | 'b' | 'B' => radix(out, conversion, &to_integer(vm, value)?, spec),
        _ => {
            let it = match value {
                Value::Str(text) => {
                    crate::value::numeral::strict_float(&text.get()).ok_or_else(|| {
                        argument_error(format!("invalid value for Float(): {}", inspect(value)))
                    })?
                }
                other => match float_of(other) {
                    Some(it) => it,
                    None => crate::value::number::need_float(other)?,
                },
            };
            float(out, conversion, it, spec)
        }
    }
}

/// `%d` takes whatever `Integer()` takes, and cuts Floats.
fn to_integer(vm: &mut Vm, value: &Value) -> Eval<BigInt> {
    let value = match value {
        Value::Float(it) => crate::value::number::truncated(*it)?,
        other => super::convert::to_integer(vm, std::slice::from_ref(other))?,
    };
    Ok(big_of(&value).unwrap_or_default())
}

fn sign(negative: bool, spec: &Spec) -> &'static str {
    match (negative, spec.plus, spec.space) {
        (true, ..) => "-",
        (false, true, _) => "+",
        (false, false, true) => " ",
        _ => "",
    }
}

fn number(out: &mut String, negative: bool, prefix: &str, digits: &str, spec: &Spec) -> Eval<()> {
    let sign = sign(negative, spec);
    let mut digits = digits.to_owned();
    if let Some(precision) = spec.precision {
        check("precision", precision)?;
        // As in C, zero has no digits then.
        if precision == 0 && digits == "0" {
            digits.clear();
        }
        digits = filled(&digits, '0', precision);
    } else if spec.zero && !spec.minus {
        let taken = sign.len() + prefix.len();
        let width = spec.width.unwrap_or(0).saturating_sub(taken);
        check("width", width)?;
        digits = filled(&digits, '0', width);
    }
    pad(
        out,
        &[sign, prefix, &digits].concat(),
        &Spec {
            zero: false,
            ..copy(spec)
        },
    )
}

fn copy(spec: &Spec) -> Spec {
    Spec { ..*spec }
}

fn radix(out: &mut String, conversion: char, it: &BigInt, spec: &Spec) -> Eval<()> {
    let base = match conversion {
        'x' | 'X' => 16,
        'o' => 8,
        _ => 2,
    };
    let prefix = match conversion {
        _ if !spec.sharp || it.is_zero() => "",
        'x' => "0x",
        'X' => "0X",
        'o' => "0",
        'b' => "0b",
        _ => "0B",
    };
    if it.is_negative() && !(spec.plus || spec.space) {
        let what = format!(
            "%{conversion} of a negative number is not supported (expected a sign, as in %+{conversion})"
        );
        return Err(error(Class::NotImplementedError, what));
    }
    let mut digits = it.abs().to_str_radix(base);
    // A zero of the precision is one of `#` as well.
    let has_zero = conversion == 'o' && spec.precision.is_some_and(|it| it > digits.len());
    let prefix = if has_zero { "" } else { prefix };
    if conversion == 'X' {
        digits.make_ascii_uppercase();
    }
    number(out, it.is_negative(), prefix, &digits, spec)
}

fn float(out: &mut String, conversion: char, it: f64, spec: &Spec) -> Eval<()> {
    let negative = it.is_sign_negative() && !it.is_nan();
    if !it.is_finite() {
        let word = if it.is_nan() { "NaN" } else { "Inf" };
        return pad(
            out,
            &[sign(negative, spec), word].concat(),
            &Spec {
                zero: false,
                ..copy(spec)
            },
        );
    }
    let magnitude = it.abs();
    let precision = spec.precision.unwrap_or(6);
    check("precision", precision)?;
    let mut text = match conversion {
        'f' => fixed(magnitude, precision),
        'e' | 'E' => scientific(magnitude, precision),
        'g' | 'G' => general(magnitude, precision.max(1), spec.sharp),
        _ => {
            return Err(argument_error(format!(
                "%{conversion} of {} is not supported",
                float_to_s(it)
            )));
        }
    };
    if spec.sharp && !text.contains('.') {
        match text.find('e') {
            Some(at) => text.insert(at, '.'),
            None => text.push('.'),
        }
    }
    if conversion.is_ascii_uppercase() {
        text = text.to_uppercase();
    }
    number(
        out,
        negative,
        "",
        &text,
        &Spec {
            precision: None,
            ..copy(spec)
        },
    )
}

/// With this number of digits after the point, without a limit.
fn fixed(magnitude: f64, precision: usize) -> String {
    let places = precision.min(PLACES_MAX);
    format!("{magnitude:.places$}") + &"0".repeat(precision - places)
}

fn scientific(magnitude: f64, precision: usize) -> String {
    let places = precision.min(PLACES_MAX);
    let zeros = "0".repeat(precision - places);
    let text = format!("{magnitude:.places$e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}{zeros}e{sign}{:02}", exponent.abs())
}

fn general(magnitude: f64, precision: usize, keep_zeros: bool) -> String {
    let exponent: i32 = if magnitude == 0.0 {
        0
    } else {
        let text = format!("{magnitude:.*e}", (precision - 1).min(PLACES_MAX));
        text.split_once('e')
            .and_then(|(_, exponent)| exponent.parse().ok())
            .unwrap_or(0)
    };
    let trim = |text: String| {
        if keep_zeros || !text.contains('.') {
            return text;
        }
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    };
    if exponent < -4 || i64::from(exponent) >= precision.cast_signed() as i64 {
        let text = scientific(magnitude, precision - 1);
        let (mantissa, power) = text.split_once('e').unwrap_or((&text, "+00"));
        return format!("{}e{power}", trim(mantissa.to_owned()));
    }
    let places = (precision.cast_signed() as i64 - 1 - i64::from(exponent)).max(0) as usize;
    trim(fixed(magnitude, places))
}

fn check(what: &str, count: usize) -> Eval<()> {
    if count > WIDTH_MAX {
        return Err(argument_error(format!(
            "{what} too big: {count} (expected at most {WIDTH_MAX})"
        )));
    }
    Ok(())
}

/// With this character before it, up to a width.
fn filled(text: &str, padding: char, width: usize) -> String {
    let missing = width.saturating_sub(text.chars().count());
    let mut out: String = std::iter::repeat_n(padding, missing).collect();
    out.push_str(text);
    out
}

fn pad(out: &mut String, text: &str, spec: &Spec) -> Eval<()> {
    let width = spec.width.unwrap_or(0);
    check("width", width)?;
    let missing = width.saturating_sub(text.chars().count());
    if !spec.minus {
        out.extend(std::iter::repeat_n(' ', missing));
    }
    out.push_str(text);
    if spec.minus {
        out.extend(std::iter::repeat_n(' ', missing));
    }
    Ok(())
}
