//! Which parts of a row a query reads, so that a reader need not build the rest. Follows the row through stages that only
//! select, through helpers it is passed to, and into the blocks of `group_by`.

pub(crate) mod constant_keys;
pub(crate) mod later_keys;
mod looking;
pub(crate) mod parallel;

use self::constant_keys::ConstantKeys;
use crate::names::M;
use crate::tree::{
    Arguments, BlockNode, Builtin, Code, Definition, Function, Inner, Literal, Node, Place,
    Program, StageCall, Target, Update,
};
use lastbyte_json::parse::Projection;

/// The parts of its input rows that the query reads.
pub(crate) fn projection(program: &Program) -> Projection {
    match walk(program) {
        // When every stage only selects, the row is printed.
        (_, _, true) => Projection::Whole,
        (_, read, false) => read,
    }
}

/// The parts of the rows that the stages read, if they print selected rows unchanged; `None` if they may do anything else.
pub(crate) fn passed_on(program: &Program) -> Option<Projection> {
    let (_, read, printed) = walk(program);
    let mut stages = program.stages.iter();
    let passes = printed && stages.all(|stage| !stage.reducing && looking::only_looks(&stage.body));
    (passes && read != Projection::Whole).then_some(read)
}

/// The constant keys that the query reads of its rows.
pub(crate) fn constant_keys(program: &Program) -> ConstantKeys {
    walk(program).0.keys
}

/// What a query does beside computing a value of each row, in words; `None` if nothing.
pub(crate) fn effect(program: &Program) -> Option<&'static str> {
    match &program.stages[..] {
        [stage] if stage.reducing => Some("a reducer, whose result is of all rows"),
        [stage] => match &stage.body {
            Node::AssignLocal(..) => Some(ASSIGNS),
            Node::Sequence(_) => Some("several statements"),
            _ => walk(program).0.effect,
        },
        _ => Some("several stages (`>>`)"),
    }
}

const ASSIGNS: &str = "an assignment";
const CHANGES: &str = "a method that changes the row";
const STAGE: &str = "the function of a stage, such as `select` and `limit`";

/// Whether a method changes what it is called on.
fn changes(call: &crate::tree::Call, is_row: bool) -> bool {
    match call.method {
        // Of a text it returns another one.
        M::Delete => is_row,
        // Of a number it is arithmetic.
        M::OpShl => matches!(
            call.arguments.list[..],
            [Node::Str(_) | Node::Interpolated(_)]
        ),
        M::Concat | M::Push | M::Pop | M::Shift | M::Unshift => true,
        method => method.name().ends_with('!'),
    }
}

/// What was found, the parts of the rows that are read, and whether rows are printed.
fn walk(program: &Program) -> (Walk<'_>, Projection, bool) {
    let mut walk = Walk::new(program);
    for (node, _) in &program.start {
        walk.node(node);
    }
    walk.is_target_row = true;
    let printed = program.stages.iter().all(|stage| walk.stage(&stage.body));
    let mut read = Projection::Fields(Vec::new());
    for path in &walk.paths {
        add(&mut read, path);
    }
    if walk.whole {
        read = Projection::Whole;
    }
    (walk, read, printed)
}

fn add(projection: &mut Projection, path: &[String]) {
    let Projection::Fields(fields) = projection else {
        return;
    };
    let Some((first, rest)) = path.split_first() else {
        *projection = Projection::Whole;
        return;
    };
    let at = fields
        .iter()
        .position(|(name, _)| name == first)
        .unwrap_or_else(|| {
            fields.push((first.clone(), Projection::Fields(Vec::new())));
            fields.len() - 1
        });
    add(&mut fields[at].1, rest);
}

struct Walk<'a> {
    program: &'a Program,
    paths: Vec<Vec<String>>,
    whole: bool,
    /// Whether `_` is an input row in this stage.
    row: bool,
    /// Whether `_` is surely an input row here: in most blocks it is an element.
    is_target_row: bool,
    keys: ConstantKeys,
    /// What it does beside computing values, in words.
    effect: Option<&'static str>,
    /// `(depth, slot)` of locals that hold the row, seen from here.
    tracked: Vec<(usize, usize)>,
    /// Helpers being walked, and with which parameter.
    helpers: Vec<(usize, usize)>,
}

impl<'a> Walk<'a> {
    fn new(program: &'a Program) -> Self {
        Self {
            program,
            paths: Vec::new(),
            whole: false,
            row: true,
            is_target_row: false,
            keys: ConstantKeys::default(),
            effect: None,
            tracked: Vec::new(),
            helpers: Vec::new(),
        }
    }

    /// Walks a stage; whether its value is the row itself, so that the next stage sees it.
    fn stage(&mut self, body: &Node) -> bool {
        let last = match body {
            Node::Sequence(nodes) => {
                if let Some((last, before)) = nodes.split_last() {
                    for node in before {
                        self.node(node);
                    }
                    last
                } else {
                    body
                }
            }
            other => other,
        };
        if self.is_row(last) {
            return true;
        }
        if let Node::Stage(call) = last
            && call.builtin == Builtin::Select
        {
            self.effect.get_or_insert(STAGE);
            self.all(&call.arguments.list);
            return true;
        }
        if let Node::Limit(limit) = last {
            self.effect.get_or_insert(STAGE);
            self.node(&limit.count);
            return true;
        }
        self.node(last);
        false
    }

    fn is_row(&self, node: &Node) -> bool {
        match node {
            Node::Row => self.row,
            Node::Local(slot) => self.tracked.contains(&(0, *slot)),
            Node::Outer(depth, slot) => self.tracked.contains(&(*depth, *slot)),
            _ => false,
        }
    }

    /// The path of `_["a"]["b"]`.
    fn path(&self, node: &Node) -> Option<Vec<String>> {
        if self.is_row(node) {
            return Some(Vec::new());
        }
        match node {
            Node::Index(index) => match &index.key {
                Node::Str(key) => {
                    let mut path = self.path(&index.receiver)?;
                    path.push((**key).to_owned());
                    Some(path)
                }
                _ => None,
            },
            Node::Call(call) if call.block.is_none() && !call.safe => {
                let keys = || {
                    call.arguments.list.iter().map(|node| match node {
                        Node::Str(key) => Some((**key).to_owned()),
                        _ => None,
                    })
                };
                match call.method {
                    M::Dig => {
                        let mut path = self.path(&call.receiver)?;
                        for key in keys() {
                            path.push(key?);
                        }
                        Some(path)
                    }
                    _ => None,
                }
            }
            _ => None,
        }
    }

    fn all<'n>(&mut self, nodes: impl IntoIterator<Item = &'n Node>) {
        for node in nodes {
            self.node(node);
        }
    }

    /// Whether a path starts at an input row for sure.
    fn starts_at_row(&self, node: &Node) -> bool {
        match node {
            Node::Row => self.is_target_row,
            Node::Index(index) => self.starts_at_row(&index.receiver),
            Node::Call(call) => self.starts_at_row(&call.receiver),
            _ => true,
        }
    }

    /// `_[:a]`, which no row has: its keys are texts.
    fn symbol_key(&mut self, receiver: &Node, key: &Node) {
        if let Node::Literal(Literal::Symbol(symbol)) = key
            && let Some(path) = self.path(receiver)
            && self.starts_at_row(receiver)
        {
            let key = format!(":{}", symbol.name());
            self.keys.read_one_of(vec![[path, vec![key]].concat()]);
        }
    }

    /// The operands of `||`: keys of which one is read, and literals. Beside any other operand, absent keys are expected.
    fn alternatives(&mut self, pair: &(Node, Node)) {
        let mut rest = vec![&pair.1, &pair.0];
        let (mut operands, mut paths) = (Vec::new(), Vec::new());
        while let Some(node) = rest.pop() {
            if let Node::Or(pair) = node {
                rest.extend([&pair.1, &pair.0]);
                continue;
            }
            operands.push(node);
            paths.extend(self.path(node).filter(|_| self.starts_at_row(node)));
        }
        let is_literal = |node: &&Node| {
            let literals = matches!(node, Node::Nil | Node::True | Node::False | Node::Int(_));
            literals || matches!(node, Node::Literal(_) | Node::Str(_))
        };
        let known = operands.iter().filter(|node| is_literal(node)).count() + paths.len();
        let has_keys = !paths.is_empty();
        if known == operands.len() {
            self.keys.read_one_of(paths);
        }
        self.keys.paused += usize::from(has_keys);
        self.all(operands);
        self.keys.paused -= usize::from(has_keys);
    }

    /// Notes the path of a node; `false` if it has none.
    fn read(&mut self, node: &Node) -> bool {
        let Some(path) = self.path(node) else {
            return false;
        };
        self.whole |= path.is_empty();
        if self.starts_at_row(node) {
            self.keys.read_one_of(vec![path.clone()]);
        }
        self.paths.push(path);
        true
    }

    fn node(&mut self, node: &Node) {
        if self.read(node) {
            return;
        }
        match node {
            Node::AssignLocal(slot, value) => {
                self.assigned((0, *slot));
                self.node(value);
            }
            Node::Update(update) => self.update(update),
            Node::Or(pair) => self.alternatives(pair),
            Node::Index(index) => {
                self.symbol_key(&index.receiver, &index.key);
                self.all([&index.receiver, &index.key]);
            }
            Node::Call(call) => self.call(call),
            Node::Helper(call) => {
                self.all(&call.receiver);
                self.helper(call.method, &call.arguments);
                self.block(call.block.as_ref(), false);
            }
            // A helper called by its name may read anything.
            Node::Kernel(call) if call.function == Function::Method => {
                self.whole = true;
                self.inner(node);
            }
            Node::Stage(call) => self.stage_call(call),
            Node::Limit(limit) => {
                self.effect.get_or_insert(STAGE);
                self.whole |= self.row;
                self.node(&limit.count);
            }
            _ => self.inner(node),
        }
    }

    /// Walks the parts of a node.
    fn inner(&mut self, node: &Node) {
        for part in node.inner() {
            match part {
                Inner::Node(node) => self.node(node),
                Inner::Target(target) => self.target(target),
                Inner::Block(block) => self.block(Some(block), false),
                Inner::Code(code) => {
                    let outer = std::mem::take(&mut self.is_target_row);
                    self.code(code, None);
                    self.is_target_row = outer;
                }
            }
        }
    }

    fn call(&mut self, call: &crate::tree::Call) {
        if !self.reads_keys(call) {
            // What changes a part of the row may change the row that is printed.
            if let Some(path) = self.path(&call.receiver) {
                if changes(call, path.is_empty()) {
                    self.effect.get_or_insert(CHANGES);
                }
                self.keys.called(call.method);
            }
            self.node(&call.receiver);
            self.all(&call.arguments.list);
        }
        self.block(call.block.as_ref(), false);
    }

    fn update(&mut self, update: &Update) {
        match &update.place {
            Place::Variable(read, target) => {
                self.node(read);
                self.target(target);
            }
            Place::Index(receiver, arguments) => {
                self.written(receiver, arguments);
                self.all(&arguments.list);
            }
        }
        self.node(&update.value);
    }

    fn stage_call(&mut self, call: &StageCall) {
        self.effect.get_or_insert(STAGE);
        self.all(&call.arguments.list);
        let bare = call.arguments.list.is_empty();
        let takes_row = match call.builtin {
            Builtin::Select | Builtin::Flat | Builtin::Sort | Builtin::Least | Builtin::Top => true,
            Builtin::Reduce => second_parameter(call.block.as_ref()).is_none(),
            // They work on the row when their argument is nil.
            Builtin::Map | Builtin::MapValues => {
                call.arguments.splat || call.arguments.list.first().is_none_or(|it| !never_nil(it))
            }
            // It takes an Array only, and a row that is one is read whole.
            Builtin::Apply | Builtin::Group => bare || call.arguments.splat,
            Builtin::GroupBy => call.block.is_none(),
            _ => false,
        };
        // In the block of another builtin the target is an element, which is read whole already.
        self.whole |= takes_row && self.row;
        match (call.builtin, &call.block) {
            (Builtin::Reduce, Some(BlockNode::Code(code))) => {
                let outer = std::mem::take(&mut self.is_target_row);
                self.code(code, second_parameter(call.block.as_ref()));
                self.is_target_row = outer;
            }
            (Builtin::GroupBy, block) => self.block(block.as_ref(), true),
            (_, block) => self.block(block.as_ref(), false),
        }
    }

    /// `_.key?("a")`, `_.fetch("a", 0)`, `_.values_at("a", "b")`: reads these keys and no others.
    fn reads_keys(&mut self, call: &crate::tree::Call) -> bool {
        let Some(path) = self.path(&call.receiver) else {
            return false;
        };
        let keys: Option<Vec<String>> = call
            .arguments
            .list
            .iter()
            .map(|node| match node {
                Node::Str(key) => Some((**key).to_owned()),
                _ => None,
            })
            .collect();
        let mut is_asked = false;
        let found = match (call.method, keys) {
            (M::KeyQ | M::HasKeyQ | M::IncludeQ, Some(keys)) if keys.len() == 1 => {
                is_asked = true;
                keys
            }
            // Even without keys, the receiver decides whether they can be called.
            (M::ValuesAt | M::Slice | M::FetchValues, Some(keys)) if !keys.is_empty() => keys,
            (M::Fetch, _) => match call.arguments.list.split_first() {
                Some((Node::Str(key), rest)) => {
                    self.all(rest);
                    vec![(**key).to_owned()]
                }
                _ => return false,
            },
            _ => return false,
        };
        let is_row = self.starts_at_row(&call.receiver);
        for key in found {
            let inner = [&path[..], &[key]].concat();
            if is_row && is_asked {
                self.keys.read_one_of(vec![path.clone()]);
                self.keys.asked(inner.clone());
            } else if is_row {
                self.keys.read_one_of(vec![inner.clone()]);
            }
            self.paths.push(inner);
        }
        true
    }

    /// A variable is given a value.
    fn assigned(&mut self, variable: (usize, usize)) {
        if self.tracked.contains(&variable) {
            self.whole = true;
            // From here on it may hold anything.
            self.keys.paused += 1;
        }
    }

    /// A place that is written into: if it is the row, or a part of it, all of it must be there.
    fn written(&mut self, receiver: &Node, keys: &Arguments) {
        self.effect.get_or_insert(ASSIGNS);
        let is_part = self.path(receiver).is_some();
        match &*keys.list {
            [Node::Str(key)] => self.keys.written((**key).to_owned()),
            _ => self.keys.paused += usize::from(is_part),
        }
        if is_part {
            self.whole = true;
        } else {
            self.node(receiver);
        }
    }

    fn target(&mut self, target: &Target) {
        match target {
            Target::Local(slot) => self.assigned((0, *slot)),
            Target::Outer(depth, slot) => self.assigned((*depth, *slot)),
            Target::Index(parts) => {
                self.written(&parts.0, &parts.1);
                self.all(&parts.1.list);
            }
            Target::Attribute(parts) => self.written(&parts.0, &Arguments::default()),
            Target::Multi(multi) => multi.targets().for_each(|target| self.target(target)),
            Target::Global(_) | Target::Instance(_) | Target::Constant(_) => {
                self.effect.get_or_insert(ASSIGNS);
            }
            Target::Nowhere => {}
        }
    }

    fn block(&mut self, block: Option<&BlockNode>, given_row: bool) {
        let outer = self.is_target_row;
        self.is_target_row &= given_row;
        self.block_code(block, given_row);
        self.is_target_row = outer;
    }

    fn block_code(&mut self, block: Option<&BlockNode>, given_row: bool) {
        match block {
            None => {}
            Some(BlockNode::Symbol(_)) => self.whole |= given_row,
            Some(BlockNode::Passed(node)) => {
                self.whole |= given_row;
                self.node(node);
            }
            Some(BlockNode::Code(code)) => {
                let simple = code.parameters.simple && code.parameters.required.len() <= 1;
                self.whole |= given_row && !simple;
                let slot = (given_row && !code.parameters.required.is_empty()).then_some(0);
                self.code(code, slot);
            }
        }
    }

    /// Walks a block; `row` is the slot of the parameter that is the row.
    fn code(&mut self, code: &Code, row: Option<usize>) {
        let outer: Vec<(usize, usize)> = self.tracked.clone();
        for tracked in &mut self.tracked {
            tracked.0 += 1;
        }
        self.tracked.extend(row.map(|slot| (0, slot)));
        self.all(code.parameters.defaults());
        self.node(&code.body);
        self.tracked = outer;
    }

    /// A helper that is given the row as a plain argument reads parts of it, too.
    fn helper(&mut self, helper: usize, arguments: &Arguments) {
        let Definition {
            name,
            code,
            is_internal,
        } = &self.program.definitions[helper];
        let rows: Vec<usize> = (0..arguments.list.len())
            .filter(|at| self.is_row(&arguments.list[*at]))
            .collect();
        for (at, argument) in arguments.list.iter().enumerate() {
            if !rows.contains(&at) {
                self.node(argument);
            }
        }
        let parameters = &code.parameters;
        let plain = |at: usize| matches!(parameters.required.get(at), Some(Target::Local(_)));
        if arguments.splat || rows.iter().any(|at| !plain(*at)) {
            self.whole |= !rows.is_empty() || arguments.splat;
        }
        let leaves = *is_internal && self.keys.enter(name);
        // Its body is walked even without the row, since it sees `_`.
        for at in rows.iter().map(|at| at + 1).chain([0]) {
            if self.helpers.contains(&(helper, at)) {
                continue;
            }
            self.helpers.push((helper, at));
            let slot = at
                .checked_sub(1)
                .and_then(|at| match parameters.required.get(at) {
                    Some(Target::Local(slot)) => Some((0, *slot)),
                    _ => None,
                });
            let outer = std::mem::replace(&mut self.tracked, slot.into_iter().collect());
            self.all(parameters.defaults());
            self.node(&code.body);
            self.tracked = outer;
        }
        if leaves {
            self.keys.leave();
        }
    }
}

/// Whether a node's value is never nil, whatever the row is.
fn never_nil(node: &Node) -> bool {
    match node {
        Node::Array(_) | Node::ArraySplat(_) | Node::Hash(_) | Node::Str(_) | Node::Int(_) => true,
        Node::Or(pair) => never_nil(&pair.1),
        Node::If(parts) => never_nil(&parts.1) && never_nil(&parts.2),
        Node::Call(call) => matches!(call.method, M::ToA | M::ToH) && !call.safe,
        Node::Kernel(call) => matches!(call.function, Function::Array | Function::Hash),
        _ => false,
    }
}

/// The slot of the second of a block's two plain parameters.
fn second_parameter(block: Option<&BlockNode>) -> Option<usize> {
    let Some(BlockNode::Code(code)) = block else {
        return None;
    };
    match (code.parameters.simple, &*code.parameters.required) {
        (true, [_, Target::Local(slot)]) => Some(*slot),
        _ => None,
    }
}
