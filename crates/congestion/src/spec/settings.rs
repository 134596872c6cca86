//! The settings of a spec, by key.

use alloc::vec::Vec;

use crate::config::WindowSize;

/// The value of a key in a spec.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// A number ([`Key::number`](crate::Key::number)).
    Number(f64),
    /// `on` or `off` ([`Key::switch`](crate::Key::switch)).
    Switch(bool),
    /// A name ([`Key::choice`](crate::Key::choice)).
    Choice(&'static str),
    /// A window ([`Key::window`](crate::Key::window)).
    Window(WindowSize),
}

/// The values set by a spec, each key at most once. Other keys have no value.
///
/// ```
/// use lastbyte_congestion::{Settings, Value};
///
/// let settings: Settings = [("gain", Value::Number(1.5))].into_iter().collect();
/// assert_eq!(settings.number("gain"), Some(1.5));
/// assert_eq!(settings.number("beta"), None);
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    values: Vec<(&'static str, Value)>,
}

impl Settings {
    /// The value of a number key, if it is set.
    pub fn number(&self, key: &str) -> Option<f64> {
        match self.get(key)? {
            Value::Number(number) => Some(number),
            _ => None,
        }
    }

    /// The value of a switch key, if it is set.
    pub fn switch(&self, key: &str) -> Option<bool> {
        match self.get(key)? {
            Value::Switch(is_on) => Some(is_on),
            _ => None,
        }
    }

    /// The value of a choice key, if it is set.
    pub fn choice(&self, key: &str) -> Option<&'static str> {
        match self.get(key)? {
            Value::Choice(name) => Some(name),
            _ => None,
        }
    }

    /// The value of a window key, if it is set.
    pub fn window(&self, key: &str) -> Option<WindowSize> {
        match self.get(key)? {
            Value::Window(size) => Some(size),
            _ => None,
        }
    }

    pub(super) fn contains(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    pub(super) fn set(&mut self, key: &'static str, value: Value) {
        self.values.push((key, value));
    }

    /// Keeps the keys for which this returns true.
    pub(super) fn retain(&mut self, mut is_kept: impl FnMut(&str) -> bool) {
        self.values.retain(|(key, _)| is_kept(key));
    }

    fn get(&self, key: &str) -> Option<Value> {
        let mut values = self.values.iter();
        values
            .find(|(name, _)| *name == key)
            .map(|(_, value)| *value)
    }
}

impl FromIterator<(&'static str, Value)> for Settings {
    fn from_iter<I: IntoIterator<Item = (&'static str, Value)>>(values: I) -> Self {
        Self {
            values: values.into_iter().collect(),
        }
    }
}
