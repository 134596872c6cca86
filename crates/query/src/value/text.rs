//! A String: UTF-8 that may be changed in place. Operations whose result would not be UTF-8 are rejected.

use std::cell::{Cell, Ref, RefCell};

pub(crate) struct Text {
    string: RefCell<String>,
    /// Keys of a Hash are frozen copies.
    frozen: Cell<bool>,
    /// For a frozen text, once known: whether it is printed without escapes.
    plain: Cell<Option<bool>>,
}

impl Text {
    pub(crate) fn new(text: String) -> Text {
        Text {
            string: RefCell::new(text),
            frozen: Cell::new(false),
            plain: Cell::new(None),
        }
    }

    pub(crate) fn frozen(text: String) -> Text {
        let it = Text::new(text);
        it.freeze();
        it
    }

    pub(crate) fn freeze(&self) {
        self.frozen.set(true);
    }

    pub(crate) fn is_frozen(&self) -> bool {
        self.frozen.get()
    }

    /// Whether it is printed without escapes, which `is_plain` finds out; for a key of many rows it is asked once.
    pub(crate) fn is_plain(&self, is_plain: impl Fn(&str) -> bool) -> bool {
        if let Some(known) = self.plain.get() {
            return known;
        }
        let plain = is_plain(&self.string.borrow());
        if self.is_frozen() {
            self.plain.set(Some(plain));
        }
        plain
    }

    pub(crate) fn get(&self) -> Ref<'_, String> {
        self.string.borrow()
    }

    pub(crate) fn string(&self) -> String {
        self.string.borrow().clone()
    }

    /// Replaces the text in place. Requires the only reference.
    pub(crate) fn become_text(&mut self, text: &str) {
        self.plain.set(None);
        let own = self.string.get_mut();
        own.clear();
        own.push_str(text);
    }

    pub(crate) fn push(&self, more: &str) {
        self.plain.set(None);
        self.string.borrow_mut().push_str(more);
    }
}
