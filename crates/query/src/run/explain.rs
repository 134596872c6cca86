//! What a query does and how, without running it.

use super::output::Form;
use super::{Format, Prepared, Query, on_large_stack};
use crate::json::condition::Condition;
use crate::plan::{self, parallel::Parallel};
use crate::run::deferred;
use crate::tree::{Builtin, Node, Program};
use lastbyte_json::Value;
use lastbyte_json::parse::Projection;
use std::fmt::Write as _;

impl Query {
    /// What the query does and how: its stages, which of them threads share, and why not more, and the fields that are read.
    /// As text, a line for each; as JSON, an object.
    pub fn explain(&self, is_json: bool) -> String {
        let form = Form::Text {
            format: Format::Json,
            write_bytes: 0,
        };
        on_large_stack(|| self.explain_in(form, is_json)).unwrap_or_default()
    }

    pub(super) fn explain_in(&self, form: Form, is_json: bool) -> String {
        let Prepared {
            program,
            projection,
            parallel,
        } = self.prepare(form);
        let stages = program.stages.iter().enumerate().map(|(at, stage)| {
            let threads = match parallel {
                Some(Parallel::Merge(last)) if at == last => "all, whose results are joined",
                Some(Parallel::Merge(last) | Parallel::Rows(last)) if at < last => "all",
                Some(Parallel::Print) => "all",
                _ => "one",
            };
            (stage.text.clone(), threads)
        });
        let stages: Vec<(String, &str)> = stages.collect();
        let mut notes = vec![
            ("plan", describe(&projection)),
            ("parallel", shared(parallel)),
        ];
        if let Some((at, why)) = plan::parallel::in_order(&program) {
            notes.push(("in order", format!("from stage[{at}]: {why}")));
        }
        notes.extend(details(&program, &projection).map(|(name, text)| (name, text.to_owned())));
        let mut text = String::new();
        if is_json {
            let string = |text: &str| Value::String(text.to_owned());
            let member = |name: &str, value| (name.replace(' ', "_"), value);
            let stages = stages.iter().map(|(text, threads)| {
                Value::Object(vec![
                    member("stage", string(text)),
                    member("threads", string(threads)),
                ])
            });
            let mut paths = Vec::new();
            list_paths(&projection, "_", &mut paths);
            let paths = paths.iter().map(|path| string(path));
            let mut members = vec![
                member("stages", Value::Array(stages.collect())),
                member("reads", Value::Array(paths.collect())),
            ];
            let notes = notes.iter().skip(1);
            members.extend(notes.map(|(name, text)| member(name, string(text))));
            let _ = writeln!(text, "{}", Value::Object(members));
            return text;
        }
        for (index, (stage, _)) in stages.iter().enumerate() {
            let _ = writeln!(text, "stage[{index}]: {stage}");
        }
        for (name, note) in notes {
            let _ = writeln!(text, "{name}: {note}");
        }
        text
    }
}

fn shared(parallel: Option<Parallel>) -> String {
    match parallel {
        None => "nothing".to_owned(),
        Some(Parallel::Print) => "all stages".to_owned(),
        Some(Parallel::Rows(at)) => format!("what stands before stage[{at}]"),
        Some(Parallel::Merge(at)) => format!("up to stage[{at}]"),
    }
}

/// What is done before a row is built, and beyond the memory limit.
fn details(
    program: &Program,
    projection: &Projection,
) -> impl Iterator<Item = (&'static str, &'static str)> {
    let passed_on = plan::passed_on(program);
    let read = passed_on.as_ref().unwrap_or(projection);
    let is_decided = Condition::of(program, read).is_some();
    let spills = program.stages.iter().any(|stage| match &stage.body {
        Node::Stage(call) => call.builtin == Builtin::Sort && call.block.is_none(),
        _ => false,
    }) || deferred::deferring(program).is_some();
    [
        (
            is_decided,
            ("rows", "those that stage[0] drops are not built"),
        ),
        (
            passed_on.is_some(),
            ("output", "the lines of the rows, unchanged"),
        ),
        (spills, ("memory", "temporary files beyond the limit")),
    ]
    .into_iter()
    .filter_map(|(holds, detail)| holds.then_some(detail))
}

fn describe(projection: &Projection) -> String {
    let mut paths = Vec::new();
    list_paths(projection, "_", &mut paths);
    match projection {
        Projection::Whole => "reads whole rows".to_owned(),
        Projection::Fields(_) if paths.is_empty() => "reads nothing of the rows".to_owned(),
        Projection::Fields(_) => format!("reads {}", paths.join(", ")),
    }
}

fn list_paths(projection: &Projection, prefix: &str, paths: &mut Vec<String>) {
    match projection {
        Projection::Whole => paths.push(prefix.to_owned()),
        Projection::Fields(fields) => {
            for (name, inner) in fields {
                list_paths(inner, &format!("{prefix}[{name:?}]"), paths);
            }
        }
    }
}
