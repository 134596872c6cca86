//! Results of the rows so far, while more are expected.

use super::Options;
use super::output::{Output, Results};
use super::pipeline::{Pipeline, SharedReader};
use crate::json::records::Header;
use crate::library::LIBRARY;
use crate::vm::Vm;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Prints the results so far from time to time. The inputs decide when: to hand over control without data, a source
/// returns [`WouldBlock`](std::io::ErrorKind::WouldBlock).
#[derive(Clone, Debug, Default)]
pub struct Follow {
    /// Set when results are due; cleared when they are printed.
    pub due: Arc<AtomicBool>,
    /// Text before the results, such as a sequence that clears the screen. Default: none.
    pub before: String,
}

impl Options {
    /// Whether results so far are due.
    fn takes_due(&self) -> bool {
        let follow = self.follow.as_ref();
        follow.is_some_and(|follow| follow.due.swap(false, Ordering::Relaxed))
    }
}

impl Pipeline<'_> {
    /// Prints the results of the rows so far if they are due and differ from those printed before. Errors in them are
    /// reported at the end of the input only.
    pub(super) fn refresh(&mut self, options: &Options) {
        if !options.takes_due() {
            return;
        }
        let mut on_error = |_| {};
        let mut vm = Vm::new(Rc::clone(&self.vm.program), &LIBRARY);
        vm.tables = self.vm.tables.share();
        vm.globals.clone_from(&self.vm.globals);
        vm.instances.clone_from(&self.vm.instances);
        vm.constants.clone_from(&self.vm.constants);
        let mut copy = Pipeline::new(
            vm,
            Output::buffered(self.output.form(), Header::default())
                .with_sentinels(options.sentinels),
            &mut on_error,
            self.projection.clone(),
            Some(SharedReader::clone(&self.reader)),
        );
        for (copy, own) in copy.stages.iter_mut().zip(&self.stages) {
            copy.scope = own.scope.copy();
        }
        copy.finish();
        if let Results::Text(groups) = copy.output.take() {
            let text = groups.concat();
            if !text.is_empty() && text != self.shown {
                self.output.flush();
                self.show_before(options);
                self.output.write_text(&text);
                self.output.flush();
                self.shown = text;
            }
        }
    }

    pub(super) fn show_before(&mut self, options: &Options) {
        if let Some(follow) = &options.follow {
            self.output.write_text(&follow.before);
        }
    }
}
