//! The classes and modules, and their ancestors.

use crate::names;

macro_rules! classes {
    ($($variant:ident $name:literal < $parent:ident,)*) => {
        /// A class or a module.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
        #[expect(clippy::enum_variant_names, reason = "`ModuleClass` and `ClassClass` are not modules and classes, but theirs")]
        pub(crate) enum Class {
            $($variant,)*
            /// A module of a helper file, by its number.
            Module(u16),
        }

        const ALL: &[(&str, Class, Class)] = &[$(($name, Class::$variant, Class::$parent),)*];
    };
}

classes! {
    BasicObject "BasicObject" < BasicObject, Object "Object" < BasicObject, Kernel "Kernel" < Object,
    Comparable "Comparable" < Object, Enumerable "Enumerable" < Object, ModuleClass "Module" < Object,
    ClassClass "Class" < ModuleClass, Nil "NilClass" < Object, True "TrueClass" < Object,
    False "FalseClass" < Object, Numeric "Numeric" < Object, Integer "Integer" < Numeric, Float "Float" < Numeric,
    Str "String" < Object, Symbol "Symbol" < Object, Array "Array" < Object, Hash "Hash" < Object,
    Range "Range" < Object, Regexp "Regexp" < Object, MatchData "MatchData" < Object, Proc "Proc" < Object,
    Method "Method" < Object, Time "Time" < Object, Enumerator "Enumerator" < Object,
    ArithmeticSequence "Enumerator::ArithmeticSequence" < Enumerator, Lazy "Enumerator::Lazy" < Enumerator,
    Math "Math" < Object, Json "JSON" < Object, Process "Process" < Object, Set "Set" < Object,
    Exception "Exception" < Object, ScriptError "ScriptError" < Exception,
    NotImplementedError "NotImplementedError" < ScriptError, NoMemoryError "NoMemoryError" < Exception,
    SystemStackError "SystemStackError" < Exception, SystemExit "SystemExit" < Exception,
    Interrupt "Interrupt" < Exception, StandardError "StandardError" < Exception,
    ArgumentError "ArgumentError" < StandardError, UncaughtThrowError "UncaughtThrowError" < ArgumentError,
    EncodingError "EncodingError" < StandardError, FiberError "FiberError" < StandardError,
    IOError "IOError" < StandardError, EOFError "EOFError" < IOError, IndexError "IndexError" < StandardError,
    KeyError "KeyError" < IndexError, StopIteration "StopIteration" < IndexError,
    LocalJumpError "LocalJumpError" < StandardError, NameError "NameError" < StandardError,
    NoMethodError "NoMethodError" < NameError, RangeError "RangeError" < StandardError,
    FloatDomainError "FloatDomainError" < RangeError, RegexpError "RegexpError" < StandardError,
    RuntimeError "RuntimeError" < StandardError, FrozenError "FrozenError" < RuntimeError,
    SecurityError "SecurityError" < Exception, ThreadError "ThreadError" < StandardError,
    TypeError "TypeError" < StandardError, ZeroDivisionError "ZeroDivisionError" < StandardError,
    MathDomainError "Math::DomainError" < ArgumentError, JsonError "JSON::JSONError" < StandardError,
    JsonParserError "JSON::ParserError" < JsonError, JsonGeneratorError "JSON::GeneratorError" < JsonError,
    JsonNestingError "JSON::NestingError" < JsonParserError,
}

impl Class {
    /// The class of this name, written with its modules.
    pub(crate) fn find(name: &str) -> Option<Class> {
        ALL.iter()
            .find(|(known, ..)| *known == name)
            .map(|(_, class, _)| *class)
    }

    pub(crate) fn nearest(name: &str) -> Option<&'static str> {
        names::nearest(name, ALL.iter().map(|(known, ..)| *known))
    }

    fn row(self) -> Option<&'static (&'static str, Class, Class)> {
        ALL.iter().find(|(_, class, _)| *class == self)
    }

    pub(crate) fn name(self) -> &'static str {
        self.row().map_or("Module", |(name, ..)| name)
    }

    pub(crate) fn is_module(self) -> bool {
        use Class as C;
        matches!(
            self,
            C::Module(_)
                | C::Kernel
                | C::Comparable
                | C::Enumerable
                | C::Math
                | C::Json
                | C::Process
        )
    }

    pub(crate) fn superclass(self) -> Option<Class> {
        if self == Class::BasicObject || self.is_module() {
            return None;
        }
        self.row().map(|(.., parent)| *parent)
    }

    /// Whether an instance of this class is a `wanted`.
    pub(crate) fn is(self, wanted: Class) -> bool {
        if self == wanted {
            return true;
        }
        match wanted {
            Class::Kernel => return self != Class::BasicObject,
            Class::Comparable if matches!(self, Class::Str | Class::Time | Class::Numeric) => {
                return true;
            }
            Class::Enumerable
                if matches!(
                    self,
                    Class::Array | Class::Hash | Class::Range | Class::Enumerator | Class::Set
                ) =>
            {
                return true;
            }
            _ => {}
        }
        if self.is_module() {
            return matches!(
                wanted,
                Class::ModuleClass | Class::Object | Class::BasicObject
            );
        }
        self.superclass().is_some_and(|parent| parent.is(wanted))
    }
}
