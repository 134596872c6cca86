//! Calls: builtins of a stage, helpers, functions, and methods of values.

use super::{Lower, Lowered, text};
use crate::class::Class;
use crate::forms::{BlockUse, FORMS, Form, Reduces};
use crate::names::{M, PRINTING, instead, meant, nearest};
use crate::tree::Literal;
use crate::tree::Op;
use crate::tree::{
    Arguments, BlockNode, Builtin, Call, Function, HelperCall, Index, KernelCall, Limit, Named,
    Node, Pair, StageCall,
};
use ruby_prism as prism;
use std::cell::Cell;

/// Names that other languages have for a builtin.
const SYNONYMS: &str = "avg mean: average(e)
median: percentile(e, 0.5)
quantile: percentile(e, p)
std stddev variance: stdev(e)
correlation: corr(x, y)
date_trunc time_bucket: bucket(e, width)
uniq unique: distinct(e)
head take: limit(n)
filter where: select(p)
reject: select(!p)
sort_by order_by: sort(key)
length size: count()
flatten: flat
count_distinct nunique: distinct(e) >> _.length
null: nil
row this: _";

/// Names of methods in other languages, and what is meant.
const METHOD_SYNONYMS: &str = "contains: include?
forEach: each
indexOf: index
isEmpty is_empty: empty?
len: length
lower toLowerCase: downcase
replaceAll: gsub
substr substring: slice
toString: to_s
toUpperCase upper: upcase
trim: strip";

/// The method that is probably meant by a name.
fn near_method(name: &str) -> Option<&'static str> {
    let near = || M::nearest(name).filter(|near| near.starts_with(|c: char| c.is_alphabetic()));
    meant(METHOD_SYNONYMS, name).or_else(near)
}

/// The percentile of a name such as `p99`.
fn percentile(name: &str) -> Option<String> {
    let digits = name.strip_prefix('p')?;
    let is_percent = matches!(digits.len(), 1 | 2) && digits.bytes().all(|it| it.is_ascii_digit());
    is_percent.then(|| format!("percentile(e, 0.{digits:0>2})"))
}

/// The functions of every object.
const FUNCTIONS: &[(&str, Function)] = &[
    ("format", Function::Format),
    ("sprintf", Function::Format),
    ("Integer", Function::Integer),
    ("Float", Function::Float),
    ("String", Function::String),
    ("Array", Function::Array),
    ("Hash", Function::Hash),
    ("raise", Function::Raise),
    ("fail", Function::Raise),
    ("loop", Function::Loop),
    ("proc", Function::Proc),
    ("lambda", Function::Lambda),
    ("require", Function::Require),
    ("require_relative", Function::Require),
    ("method", Function::Method),
];

const LIBRARIES: &[&str] = &["time", "json", "set", "date", "bigdecimal/util"];

/// Calls that pass on a reducer's result unchanged.
const TRANSPARENT: &[&str] = &["then", "yield_self", "tap", "itself"];

impl Lower {
    pub(super) fn arguments(
        &mut self,
        node: Option<prism::ArgumentsNode<'_>>,
    ) -> Lowered<Arguments> {
        let mut arguments = Arguments::default();
        let Some(node) = node else {
            return Ok(arguments);
        };
        for argument in &node.arguments() {
            if let Some(hash) = argument.as_keyword_hash_node() {
                arguments
                    .list
                    .push(Node::Hash(self.pairs(&hash.elements())?));
                // `"k" => v` among the arguments is an ordinary Hash for methods without keywords.
                arguments.keywords = true;
                continue;
            }
            let lowered = self.node(&argument)?;
            arguments.splat |= matches!(lowered, Node::Splat(_));
            arguments.list.push(lowered);
        }
        Ok(arguments)
    }

    fn block_node(&mut self, node: Option<prism::Node<'_>>) -> Lowered<Option<BlockNode>> {
        let Some(node) = node else {
            return Ok(None);
        };
        if let Some(block) = node.as_block_node() {
            return Ok(Some(BlockNode::Code(self.block(&block)?)));
        }
        let Some(passed) = node.as_block_argument_node() else {
            return self.fail(&node.location(), "this block is not supported");
        };
        Ok(Some(match passed.expression() {
            Some(inner) => {
                if let Some(symbol) = inner.as_symbol_node() {
                    let name = self.utf8(&inner.location(), symbol.unescaped())?;
                    return Ok(Some(BlockNode::Symbol(
                        self.method_name(&inner.location(), &name)?,
                    )));
                }
                BlockNode::Passed(self.node(&inner)?)
            }
            None => BlockNode::Passed(self.local("&", 0)),
        }))
    }

    fn method_name(&self, at: &prism::Location<'_>, name: &str) -> Lowered<M> {
        if let Some(method) = M::find(name) {
            return Ok(method);
        }
        let near = || near_method(name).map(|near| format!("the nearest one is `{near}`"));
        let hint = instead(name)
            .or_else(near)
            .map_or_else(String::new, |hint| format!("; {hint}"));
        self.fail(
            at,
            format!("undefined method '{name}' (NoMethodError): it is not supported{hint}"),
        )
    }

    pub(super) fn call(&mut self, node: &prism::CallNode<'_>) -> Lowered {
        let name = text(&node.name());
        let at = node.message_loc().unwrap_or_else(|| node.location());
        let Some(receiver) = node.receiver() else {
            return self.function_call(node, &name, &at);
        };
        if let Some(lowered) = self.module_call(node, &receiver, &name)? {
            return Ok(lowered);
        }
        let receiver = self.node(&receiver)?;
        if let Node::Literal(Literal::Class(Class::Time)) = receiver
            && let Some(instead) = without_clock_or_parser(&name)
        {
            return self.fail(&at, format!("`Time.{name}` is not supported: {instead}"));
        }
        if reducer_at(&receiver) && !TRANSPARENT.contains(&name.as_str()) {
            return self.refuse_reducer(&at, &name, "before");
        }
        if node.is_attribute_write() && name != "[]=" {
            return self.fail(
                &at,
                format!("undefined method '{name}' (NoMethodError): it is not supported"),
            );
        }
        let arguments = self.arguments(node.arguments())?;
        if arguments.list.iter().any(reducer_at) {
            return self.refuse_reducer(&at, &name, "after");
        }
        if name == "!" && arguments.list.is_empty() {
            return Ok(Node::Not(Box::new(receiver)));
        }
        let is_known = M::find(&name).is_some() || instead(&name).is_some();
        if !is_known && arguments.list.is_empty() && node.block().is_none() {
            self.refuse_field(node, &receiver, &name, &at)?;
        }
        let method = self.method_name(&at, &name)?;
        let block = self.block_node(node.block())?;
        let safe = node.is_safe_navigation();
        if arguments.list.len() == 1 && arguments.is_plain() && block.is_none() && !safe {
            return Ok(one_argument(receiver, method, arguments));
        }
        // `-1` is a literal already; `-x` is a call.
        if node.is_attribute_write() {
            return Ok(Self::attribute_write(receiver, method, arguments));
        }
        Ok(Node::Call(Box::new(Call {
            receiver,
            method,
            arguments,
            block,
            safe,
        })))
    }

    /// Refuses `_.name`, where `_["name"]` is meant.
    fn refuse_field(
        &self,
        node: &prism::CallNode<'_>,
        receiver: &Node,
        name: &str,
        at: &prism::Location<'_>,
    ) -> Lowered<()> {
        let (Node::Row | Node::Local(_) | Node::Index(_), Some(source)) =
            (receiver, node.receiver())
        else {
            return Ok(());
        };
        let source = String::from_utf8_lossy(source.location().as_slice()).into_owned();
        let near = near_method(name).map_or_else(String::new, |near| format!(", or `{near}`"));
        self.fail(
            at,
            format!(
                "undefined method '{name}' (NoMethodError): did you mean the field `{source}[\"{name}\"]`{near}?"
            ),
        )
    }

    /// `a[i] = v` has the value `v`, whatever the method returns.
    fn attribute_write(receiver: Node, method: M, mut arguments: Arguments) -> Node {
        let value = arguments.list.pop().unwrap_or(Node::Nil);
        let target = if method == M::OpIndexSet {
            crate::tree::Target::Index(Box::new((receiver, arguments)))
        } else {
            crate::tree::Target::Attribute(Box::new((receiver, method)))
        };
        Node::Assign(Box::new((target, value)))
    }

    fn refuse_reducer(&self, at: &prism::Location<'_>, name: &str, side: &str) -> Lowered {
        if name == "|" {
            // As in jq and shells.
            let text = "`|` does not join stages (expected `>>`, as in `select(_[\"ttlb\"] > 100) >> count()`)";
            return self.fail(at, text.to_owned());
        }
        let operator = !name.starts_with(|c: char| c.is_alphabetic() || c == '_');
        let example = match (operator, side) {
            (true, "before") => format!("`count() >> _ {name} 1`"),
            (true, _) => format!("`count() >> 1 {name} _`"),
            (false, "before") => format!("`count() >> _.{name}`"),
            (false, _) => "`count() >> _ + 1`".to_owned(),
        };
        self.fail(
            at,
            format!("a reducer's result is known at the end of input only, so `{name}` cannot work on it: do it in the next stage, as in {example}"),
        )
    }

    /// `Module.method(…)` of a helper file.
    fn module_call(
        &mut self,
        node: &prism::CallNode<'_>,
        receiver: &prism::Node<'_>,
        name: &str,
    ) -> Lowered<Option<Node>> {
        if receiver.as_constant_read_node().is_none() && receiver.as_constant_path_node().is_none()
        {
            return Ok(None);
        }
        let Node::Literal(Literal::Class(Class::Module(module))) = self.node(receiver)? else {
            return Ok(None);
        };
        let path = format!("{}.{name}", self.survey.modules[usize::from(module)]);
        let Some(method) = self.survey.definition(&path) else {
            let at = receiver.location();
            return self.fail(
                &at,
                format!(
                    "undefined method '{name}' for module {}",
                    self.survey.modules[usize::from(module)]
                ),
            );
        };
        let arguments = self.arguments(node.arguments())?;
        let block = self.block_node(node.block())?;
        let receiver = Some(Node::Literal(Literal::Class(Class::Module(module))));
        Ok(Some(Node::Helper(Box::new(HelperCall {
            method,
            receiver,
            arguments,
            block,
        }))))
    }

    /// A call without a receiver.
    fn function_call(
        &mut self,
        node: &prism::CallNode<'_>,
        name: &str,
        at: &prism::Location<'_>,
    ) -> Lowered {
        if name == "_" && node.arguments().is_none() {
            return Ok(Node::Row);
        }
        if name == "block_given?" {
            return Ok(Node::BlockGiven);
        }
        let form = Form::find(name);
        if let Some(form) = form.filter(|form| !form.is_own) {
            return self.builtin(node, form);
        }
        if let Some(lowered) = self.helper_call(node, name)? {
            return Ok(lowered);
        }
        if let Some(form) = form {
            return self.builtin(node, form);
        }
        if name == "limit" {
            return self.limit(node, at);
        }
        if matches!(
            name,
            "module_function" | "extend" | "include" | "private" | "public" | "private_constant"
        ) && !self.scopes.is_empty()
        {
            if let Some(arguments) = node.arguments() {
                for argument in &arguments.arguments() {
                    if argument.as_def_node().is_some() {
                        self.node(&argument)?;
                    }
                }
            }
            return Ok(Node::Nil);
        }
        if let Some((_, function)) = FUNCTIONS.iter().find(|(known, _)| *known == name) {
            return self.kernel(node, *function, name, at);
        }
        if matches!(name, "rand" | "srand")
            && let Err(refused) = self.method_name(at, name)
        {
            return Err(refused);
        }
        if PRINTING.contains(&name) {
            return self.fail(
                at,
                format!("`{name}` is not supported: a stage's value is what is printed"),
            );
        }
        if name.contains(['“', '”', '„', '‘', '’', '«', '»']) {
            return self.fail(
                at,
                format!("typographic quotes are part of the name `{name}` (expected \" or ')"),
            );
        }
        let helpers = self.survey.definitions();
        let known = FORMS.iter().map(|form| form.name);
        let known = known.chain(FUNCTIONS.iter().map(|(known, _)| *known));
        let known = known.chain(["limit", "block_given?"]);
        let is_method = || M::find(name).map(M::name).or_else(|| near_method(name));
        let near = meant(SYNONYMS, name)
            .map(str::to_owned)
            .or_else(|| percentile(name))
            .or_else(|| {
                let all = known.chain(helpers.iter().map(String::as_str));
                nearest(name, all).map(str::to_owned)
            })
            .or_else(|| {
                let has_arguments = node.arguments().is_some();
                is_method()
                    .filter(|_| has_arguments)
                    .map(|method| format!("e.{method}"))
            });
        let field = node.is_variable_call().then(|| format!("_[\"{name}\"]"));
        let hint = match (near, field) {
            (Some(near), _) if near == "_" || near == "nil" => format!("; did you mean `{near}`?"),
            (Some(near), Some(field)) => {
                format!("; did you mean `{near}`, or the field `{field}`?")
            }
            (Some(near), None) => format!("; did you mean `{near}`?"),
            (None, Some(field)) => format!("; did you mean the field `{field}`?"),
            (None, None) => String::new(),
        };
        let what = if node.is_variable_call() {
            "undefined local variable or method"
        } else {
            "undefined method"
        };
        self.fail(at, format!("{what} '{name}'{hint} (NameError)"))
    }

    fn helper_call(&mut self, node: &prism::CallNode<'_>, name: &str) -> Lowered<Option<Node>> {
        let own = (!self.module.is_empty())
            .then(|| {
                self.survey
                    .definition(&format!("{}.{name}", self.module.join("::")))
            })
            .flatten();
        let Some(method) = own.or_else(|| self.survey.definition(name)) else {
            return Ok(None);
        };
        let arguments = self.arguments(node.arguments())?;
        let block = self.block_node(node.block())?;
        Ok(Some(Node::Helper(Box::new(HelperCall {
            method,
            receiver: None,
            arguments,
            block,
        }))))
    }

    fn limit(&mut self, node: &prism::CallNode<'_>, at: &prism::Location<'_>) -> Lowered {
        // Only a stage has one scope and one context.
        if self.scopes.len() != 1 || self.contexts.len() != 1 {
            return self.fail(
                at,
                "`limit` counts the rows of a stage, and cannot stand in a block, a loop or a helper: write `… >> limit(10)`",
            );
        }
        let mut arguments = self.arguments(node.arguments())?;
        let (Some(count), true, None) = (
            arguments.list.pop(),
            arguments.list.is_empty() && arguments.is_plain(),
            node.block(),
        ) else {
            return self.fail(at, "`limit` expects a number of rows: write `limit(10)`");
        };
        if is_of_row(&count) {
            let message = "`limit` expects the same number for all rows: write `limit(10)`";
            return self.fail(at, message);
        }
        let at = self.program.limits;
        self.program.limits += 1;
        let ends_run = self.program.stages.iter().all(|stage| !stage.reducing);
        Ok(Node::Limit(Box::new(Limit {
            count,
            at,
            ends_run,
        })))
    }

    fn builtin(&mut self, node: &prism::CallNode<'_>, form: &Form) -> Lowered {
        let (at, name, builtin) = (node.location(), form.name, form.builtin);
        if let Some(arguments) = node.arguments() {
            for argument in &arguments.arguments() {
                if matches!(builtin, Builtin::Select | Builtin::CountIf) {
                    self.refuse_assignment(&argument)?;
                }
                if self.survey.reduces(&argument) {
                    return self.refuse_reducer(&argument.location(), name, "after");
                }
            }
        }
        let arguments = self.arguments(node.arguments())?;
        self.refuse_form(&at, form, &arguments, node.block().is_some())?;
        if builtin == Builtin::Lookup {
            return self.lookup(&at, arguments);
        }
        if form.takes_value_of_row()
            && let Some(Node::Str(text)) = arguments.list.first()
        {
            let what = "is the same in all rows (expected a value of the row:";
            return self.fail(&at, format!("`{name}({text:?})` {what} `_[{text:?}]`)"));
        }
        if matches!(builtin, Builtin::First | Builtin::Last)
            && let Some(Node::Int(count)) = arguments.list.first()
        {
            let what = "is the same in all rows (expected a value of the row; for rows:";
            return self.fail(&at, format!("`{name}({count})` {what} `limit({count})`)"));
        }
        if let Some(setting) = misplaced_setting(builtin, &arguments.list) {
            let written = form.written;
            let message = format!(
                "wrong arguments of `{name}` (expected `{written}`, with the same {setting} for all rows)"
            );
            return self.fail(&at, message);
        }
        let reducing = match node.block() {
            Some(block) => match block.as_block_node() {
                Some(block) => block.body().is_some_and(|body| self.survey.reduces(&body)),
                None => false,
            },
            None => false,
        };
        let block = self.block_node(node.block())?;
        Ok(Node::Stage(Box::new(StageCall {
            builtin,
            arguments,
            block,
            reducing,
        })))
    }

    /// `lookup("file.csv", e, on: "column")`: the number of its table takes the place of the names.
    fn lookup(&mut self, at: &prism::Location<'_>, mut arguments: Arguments) -> Lowered {
        let column = match (arguments.keywords, arguments.list.last()) {
            (false, _) => Some(None),
            (true, Some(Node::Hash(pairs))) => match &pairs[..] {
                [Pair::Entry(_, Node::Str(column))] => Some(Some((**column).to_owned())),
                _ => None,
            },
            (true, _) => None,
        };
        let (Some(Node::Str(file)), Some(column), false) =
            (arguments.list.first(), column, arguments.splat)
        else {
            let what = "`lookup` expects the names of a file and a column as they are, the same for all rows: write";
            let example = "`lookup(\"hosts.csv\", _[\"host\"], on: \"name\")`";
            return self.fail(at, format!("{what} {example}"));
        };
        let file = (**file).to_owned();
        let named = Named { file, column };
        let tables = &mut self.program.tables;
        let known = tables.iter().position(|known| *known == named);
        let number = known.unwrap_or(tables.len());
        if known.is_none() {
            tables.push(named);
        }
        arguments.list.truncate(2);
        arguments.keywords = false;
        arguments.list[0] = Node::Int(number.cast_signed() as i64);
        Ok(Node::Stage(Box::new(StageCall {
            builtin: Builtin::Lookup,
            arguments,
            block: None,
            reducing: false,
        })))
    }

    /// Refuses keywords, numbers of arguments and blocks that a builtin does not have.
    fn refuse_form(
        &self,
        at: &prism::Location<'_>,
        form: &Form,
        arguments: &Arguments,
        has_block: bool,
    ) -> Lowered<()> {
        let name = form.name;
        let pairs = match (arguments.keywords, arguments.list.last()) {
            (true, Some(Node::Hash(pairs))) => pairs.as_slice(),
            _ => &[],
        };
        let unknown = pairs.iter().find_map(|pair| match pair {
            Pair::Entry(Node::Literal(Literal::Symbol(key)), _) => {
                let key = key.name().to_string();
                (!form.keywords.contains(&&*key)).then_some((format!(":{key}"), key))
            }
            Pair::Entry(Node::Str(key), _) => Some((format!("{key:?}"), key.to_string())),
            _ => None,
        });
        let counted = arguments.list.len() - usize::from(arguments.keywords && !form.takes_pairs);
        let fits = arguments.splat || form.counts.contains(&counted);
        if let Some((shown, key)) = unknown
            && !(form.takes_pairs && fits)
        {
            let instead = form.instead_of(&key);
            let (given, expected) = (arguments.list.len(), range(&form.counts));
            let what = if form.takes_pairs || name == "select" {
                format!("wrong number of arguments (given {given}, expected {expected})")
            } else {
                format!("unknown keyword: {shown}")
            };
            let what = format!("{what}: `{name}` has no keyword `{key}:`{instead}");
            return self.fail(at, what);
        }
        if !fits {
            let plural = if counted == 1 { "" } else { "s" };
            let written = form.written;
            let what = format!("`{name}` with {counted} argument{plural} (expected `{written}`)");
            return self.fail(at, what);
        }
        match (form.block, has_block) {
            (BlockUse::Refused, true) => {
                let instead = form.instead_of("");
                self.fail(at, format!("`{name}` takes no block{instead}"))
            }
            (BlockUse::Required, false) => self.fail(at, format!("{name} requires a block")),
            _ => Ok(()),
        }
    }

    fn kernel(
        &mut self,
        node: &prism::CallNode<'_>,
        function: Function,
        name: &str,
        at: &prism::Location<'_>,
    ) -> Lowered {
        let arguments = self.arguments(node.arguments())?;
        if arguments.list.iter().any(reducer_at) {
            return self.refuse_reducer(at, name, "after");
        }
        if function == Function::Require
            && let Some(Node::Str(library)) = arguments.list.first()
            && !LIBRARIES.contains(&&**library)
        {
            return self.fail(
                at,
                format!("cannot load `{library}`: of the libraries, time, json and set are there"),
            );
        }
        let block = self.block_node(node.block())?;
        Ok(Node::Kernel(Box::new(KernelCall {
            function,
            arguments,
            block,
        })))
    }
}

/// What to write instead of a method of Ruby's `Time` or its library `time`.
fn without_clock_or_parser(name: &str) -> Option<&'static str> {
    Some(match name {
        "now" => "a query's result depends on its input only; use the `time` of a row",
        "strptime" | "httpdate" | "rfc2822" | "rfc822" => {
            "use `Time.parse` for ISO 8601 and dates of HTTP, or take the stamp apart, as in `Time.utc(*_[\"time\"].scan(/\\d+/).first(6))`"
        }
        _ => return None,
    })
}

/// As Ruby writes how many arguments there may be.
fn range(counts: &std::ops::RangeInclusive<usize>) -> String {
    match (counts.start(), counts.end()) {
        (least, most) if least == most => least.to_string(),
        (least, most) => format!("{least}..{most}"),
    }
}

/// The setting of a reducer that has the place of a value of the row, or is one: it would be that of the first row.
fn misplaced_setting(builtin: Builtin, arguments: &[Node]) -> Option<&'static str> {
    let is_number = |node: &Node| matches!(node, Node::Int(_) | Node::Literal(Literal::Float(_)));
    let (setting, value, name) = match (builtin, arguments) {
        (Builtin::Top, [count]) => (count, None, "n"),
        (Builtin::Top, [count, key]) => (count, Some(key), "n"),
        (Builtin::Histogram | Builtin::Bucket, [value, width]) => (width, Some(value), "width"),
        (Builtin::Percentile, [value, share, ..]) => (share, Some(value), "p"),
        _ => return None,
    };
    let is_swapped = value.is_some_and(is_number) && !is_number(setting);
    (is_of_row(setting) || is_swapped).then_some(name)
}

/// Whether a node's value is of the row for sure: `_`, a part of it, or what is computed from that.
fn is_of_row(node: &Node) -> bool {
    match node {
        Node::Row => true,
        Node::Index(index) => is_of_row(&index.receiver),
        Node::Call(call) => is_of_row(&call.receiver),
        Node::Binary(parts) => is_of_row(&parts.1) || is_of_row(&parts.2),
        _ => false,
    }
}

/// Whether a node is certainly a reducer's result.
fn reducer_at(node: &Node) -> bool {
    match node {
        Node::Stage(call) => match Form::of(call.builtin).reduces {
            Reduces::Never => false,
            Reduces::AsItsBlock => call.reducing,
            Reduces::Always => true,
        },
        _ => false,
    }
}

/// A method with one argument: operators have nodes of their own.
fn one_argument(receiver: Node, method: M, mut arguments: Arguments) -> Node {
    if let Some(op) = Op::of(method) {
        let argument = arguments.list.remove(0);
        return Node::Binary(Box::new((op, receiver, argument)));
    }
    match method {
        M::OpIndex => {
            let key = arguments.list.remove(0);
            Node::Index(Box::new(Index {
                receiver,
                key,
                place: Cell::new(0),
            }))
        }
        _ => Node::Call(Box::new(Call {
            receiver,
            method,
            arguments,
            block: None,
            safe: false,
        })),
    }
}
