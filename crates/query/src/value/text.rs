//! A String: UTF-8 that may be changed in place. What would not be UTF-8 is refused where it would arise.

use std::cell::{Cell, Ref, RefCell};

pub(crate) struct Text {
    text: RefCell<String>,
    /// Keys of a Hash are frozen copies.
    frozen: Cell<bool>,
}

impl Text {
    pub(crate) fn new(text: String) -> Text {
        Text {
            text: RefCell::new(text),
            frozen: Cell::new(false),
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

    pub(crate) fn get(&self) -> Ref<'_, String> {
        self.text.borrow()
    }

    pub(crate) fn string(&self) -> String {
        self.text.borrow().clone()
    }

    pub(crate) fn set(&self, text: String) {
        *self.text.borrow_mut() = text;
    }

    /// Becomes another text in the same place; for one that nobody else has.
    pub(crate) fn become_text(&mut self, text: &str) {
        let own = self.text.get_mut();
        own.clear();
        own.push_str(text);
    }

    pub(crate) fn push(&self, more: &str) {
        self.text.borrow_mut().push_str(more);
    }
}
