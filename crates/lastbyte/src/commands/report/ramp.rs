//! `lastbyte report --plan`: the page of a ramp, from its decisions alone.

use core::fmt::Write as _;
use std::{path::Path, process::ExitCode};

use lastbyte_steer::standing::Standing;
use lastbyte_units as units;
use serde_json::json;

use super::Arguments;
use crate::{
    commands::steer,
    failure::Failure,
    files,
    terminal::{notice, print, save},
};

/// The most columns of a line on the terminal.
const COLUMNS: usize = 80;

pub(super) fn run(arguments: &Arguments, folder: &Path) -> Result<ExitCode, Failure> {
    files::check_page_name("--out", &arguments.out, "")?;
    files::check_is_page(&arguments.out)?;
    let decisions = steer::decisions(folder)?;
    let (ramp, is_torn) = (decisions.ramp, decisions.is_torn);
    let last = ramp.looks().last().map(|last| last.epoch);
    if let Some(published) = decisions
        .published
        .filter(|published| Some(*published) < last)
    {
        notice(format!(
            "experiment.toml is of epoch {published}, before the last decision: servers that read it have earlier shares"
        ));
    }
    let shown = folder.display();
    if ramp.looks().is_empty() {
        return Err(Failure::Usage(format!(
            "`{shown}`: no decisions (expected the directory of a ramp, as `--state` of `lastbyte steer`)"
        )));
    }
    if is_torn {
        notice(format!("decisions of `{shown}`: {}", steer::TORN));
    }
    let standing = Standing::of(&ramp).ok_or_else(|| {
        Failure::Usage(format!(
            "`{shown}`: its decisions have no `setup` (expected the directory of a ramp that began with this version)"
        ))
    })?;
    let mut page = standing.page();
    page.command = super::again();
    page.facts.push(("version".to_owned(), super::version()));
    if let Some(title) = &arguments.title {
        page.title.clone_from(title);
    }
    save(&arguments.out, page.html().as_bytes())?;
    if arguments.json {
        let looks: Vec<_> = standing.decisions().collect();
        let text = json!({
            "standing": standing.sentence(),
            "setup": looks.first().and_then(|first| first.setup.as_ref()),
            "looks": ramp.looks().len(),
            "decisions": looks,
        });
        print(format!("{text:#}\n"))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut text = wrapped(&standing.sentence(), 0) + "\n";
    for look in standing.decisions() {
        let line = format!(
            "look {}: {}, {}: {}",
            look.look,
            look.action,
            units::show_share(look.share),
            look.rule
        );
        text.push_str(&wrapped(&line, 2));
    }
    print(text)?;
    Ok(ExitCode::SUCCESS)
}

/// A text in lines, of which those after the first are indented.
fn wrapped(text: &str, indent: usize) -> String {
    let (mut lines, mut width) = (String::new(), 0);
    for word in text.split(' ') {
        let length = word.chars().count();
        if width > 0 && width + 1 + length > COLUMNS {
            let _ = write!(lines, "\n{}", " ".repeat(indent));
            width = indent;
        } else if width > 0 {
            lines.push(' ');
            width += 1;
        }
        lines.push_str(word);
        width += length;
    }
    lines + "\n"
}
