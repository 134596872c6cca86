//! The language's methods and functions, as an evaluator calls them.

use crate::builtins;
use crate::methods::{self, enumerable};
use crate::vm::{Library, Vm};

pub(crate) static LIBRARY: Library = Library {
    call: methods::call,
    operate: methods::binary,
    each: enumerable::each,
    to_vec: enumerable::to_vec,
    function: Vm::kernel,
    builtin: builtins::call,
};
