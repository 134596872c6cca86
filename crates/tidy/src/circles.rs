//! Circles between the modules of a crate: sets of files that use each other, found by reading `use` items and paths.
//!
//! Tests do not count. Nor does a parent that only re-exports what its child defines.

use std::collections::{BTreeMap, BTreeSet};

use crate::tree::files;

/// A module's path below the crate: empty for the crate root.
type Module = Vec<String>;

/// The circles of a crate. Each is a list of modules, in order, such as `packet::long`; the crate root is `crate`.
pub(crate) fn circles(name: &str) -> Vec<Vec<String>> {
    let source = format!("crates/{name}/src/");
    let mut texts: BTreeMap<Module, String> = BTreeMap::new();
    for file in files(&source, &[".rs"]) {
        if let Some(module) = module_of(file.path.trim_start_matches(&source)) {
            texts.insert(module, file.text);
        }
    }
    let known: BTreeSet<&Module> = texts.keys().collect();
    let arrows: BTreeMap<&Module, BTreeSet<Module>> = texts
        .iter()
        .map(|(module, text)| (module, used_by(module, text, &known)))
        .collect();
    let reachable: BTreeMap<&Module, BTreeSet<Module>> = texts
        .keys()
        .map(|module| (module, reachable_from(module, &arrows)))
        .collect();
    let mut found = BTreeSet::new();
    for (module, all) in &reachable {
        if !all.contains(*module) {
            continue;
        }
        let circle = all.iter().filter(|other| {
            let back = reachable.get(other);
            back.is_some_and(|back| back.contains(*module))
        });
        found.insert(circle.map(shown).collect::<Vec<_>>());
    }
    found.into_iter().collect()
}

fn shown(module: &Module) -> String {
    if module.is_empty() {
        "crate".to_owned()
    } else {
        module.join("::")
    }
}

/// The module that a file below `src/` is; `None` for tests.
fn module_of(path: &str) -> Option<Module> {
    let mut parts: Module = path
        .trim_end_matches(".rs")
        .split('/')
        .map(str::to_owned)
        .collect();
    if parts.iter().any(|part| part == "tests" || part == "bin") {
        return None;
    }
    let last = parts.last().map(String::as_str);
    if last == Some("mod") || (parts.len() == 1 && matches!(last, Some("lib" | "main"))) {
        parts.pop();
    }
    Some(parts)
}

fn reachable_from(
    start: &Module,
    arrows: &BTreeMap<&Module, BTreeSet<Module>>,
) -> BTreeSet<Module> {
    let mut reached = BTreeSet::new();
    let mut next = vec![start.clone()];
    while let Some(module) = next.pop() {
        for used in arrows.get(&module).into_iter().flatten() {
            if reached.insert(used.clone()) {
                next.push(used.clone());
            }
        }
    }
    reached
}

/// The modules that a module uses.
fn used_by(module: &Module, text: &str, known: &BTreeSet<&Module>) -> BTreeSet<Module> {
    let tokens = tokens(text);
    let (mut used, mut exported) = (BTreeSet::new(), BTreeSet::new());
    let mut at = 0;
    let mut is_public = false;
    while let Some(token) = tokens.get(at) {
        let mut paths = Vec::new();
        let is_use = token == "use";
        match token.as_str() {
            // `pub(crate)` is followed by a parenthesis, which does not end the visibility.
            "pub" => is_public = true,
            "(" | ")" | "in" => {}
            "mod" if tokens.get(at + 1).is_some_and(|name| name == "tests") => {
                if tokens.get(at + 2).is_some_and(|brace| brace == "{") {
                    break;
                }
            }
            "use" => {
                at += 1;
                read_tree(&tokens, &mut at, &Vec::new(), &mut paths);
            }
            "crate" | "self" | "super" => {
                let mut path = vec![token.clone()];
                while tokens.get(at + 1).is_some_and(|next| next == "::")
                    && tokens.get(at + 2).is_some_and(|next| is_word(next))
                {
                    path.push(tokens[at + 2].clone());
                    at += 2;
                }
                if path.len() > 1 {
                    paths.push(path);
                }
            }
            _ => is_public = false,
        }
        let into = if is_use && is_public {
            &mut exported
        } else {
            &mut used
        };
        if is_use {
            is_public = false;
        }
        into.extend(paths.iter().filter_map(|path| resolve(module, path, known)));
        at += 1;
    }
    // What is exported from elsewhere than a child is used.
    used.extend(
        exported
            .into_iter()
            .filter(|other| !other.starts_with(module)),
    );
    used.remove(module);
    used
}

/// Reads a tree of a `use` item into whole paths; `at` is behind it then.
fn read_tree(tokens: &[String], at: &mut usize, prefix: &Module, paths: &mut Vec<Module>) {
    let mut path = prefix.clone();
    while let Some(token) = tokens.get(*at) {
        match token.as_str() {
            "{" => {
                loop {
                    *at += 1;
                    read_tree(tokens, at, &path, paths);
                    if tokens.get(*at).is_none_or(|token| token != ",") {
                        break;
                    }
                }
                // Behind the closing brace.
                *at += 1;
                return;
            }
            "," | "}" | ";" => break,
            "::" | "as" => {}
            word => path.push(word.to_owned()),
        }
        *at += 1;
    }
    if path.len() > prefix.len() {
        paths.push(path);
    }
}

/// The module that a path leads to: the longest one that begins it.
fn resolve(module: &Module, path: &[String], known: &BTreeSet<&Module>) -> Option<Module> {
    let (first, mut rest) = path.split_first()?;
    let mut base = match first.as_str() {
        "crate" => Vec::new(),
        "self" => module.clone(),
        "super" => {
            let mut base = module.clone();
            base.pop();
            while let Some((next, after)) = rest.split_first()
                && next == "super"
            {
                base.pop();
                rest = after;
            }
            base
        }
        child => {
            let mut base = module.clone();
            base.push(child.to_owned());
            // Another crate.
            known.get(&base)?;
            base
        }
    };
    for part in rest {
        base.push(part.clone());
        if !known.contains(&base) {
            base.pop();
            break;
        }
    }
    Some(base)
}

fn is_word(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// Words, `::` and single signs, without comments, strings and characters.
fn tokens(text: &str) -> Vec<String> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let len = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if let Some(raw) = rest.strip_prefix("r#\"") {
            raw.find("\"#").map_or(rest.len(), |end| end + 5)
        } else if first == '"' {
            string_len(rest)
        } else if first == '\'' {
            // A character; otherwise a lifetime, whose name is harmless.
            let is_escaped = rest.starts_with("'\\");
            let after = rest[1..].chars().next().map_or(0, char::len_utf8);
            match rest[1 + after..].find('\'') {
                Some(0) => after + 2,
                Some(end) if is_escaped => after + end + 2,
                _ => 1,
            }
        } else if is_word(rest) {
            let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_'));
            let len = end.unwrap_or(rest.len());
            tokens.push(rest[..len].to_owned());
            len
        } else if rest.starts_with("::") {
            tokens.push("::".to_owned());
            2
        } else {
            if !first.is_whitespace() {
                tokens.push(first.to_string());
            }
            first.len_utf8()
        };
        rest = &rest[len..];
    }
    tokens
}

fn string_len(text: &str) -> usize {
    let mut is_escaped = false;
    for (index, c) in text.char_indices().skip(1) {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' => return index + 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_read_from_use_items_and_code() {
        let known: Vec<Module> = ["", "a", "b", "b::c", "b::d"]
            .map(|path| {
                path.split("::")
                    .filter(|part| !part.is_empty())
                    .map(str::to_owned)
                    .collect()
            })
            .to_vec();
        let known: BTreeSet<&Module> = known.iter().collect();
        let module = vec!["b".to_owned()];
        let of = |text: &str| -> Vec<String> {
            used_by(&module, text, &known).iter().map(shown).collect()
        };
        assert_eq!(of("use crate::{a::X, b::c::{self, Y}};"), ["a", "b::c"]);
        assert_eq!(of("pub use self::c::X; pub(crate) use d::Y;"), [""; 0]);
        assert_eq!(of("pub use crate::a::X;"), ["a"]);
        assert_eq!(of("use c::X as Z; fn f(x: super::a::T) {}"), ["a", "b::c"]);
        assert_eq!(
            of("// crate::a::X\nlet s = \"crate::a::X\"; let c = '\"';"),
            [""; 0]
        );
        assert_eq!(of("#[cfg(test)]\nmod tests { use crate::a; }"), [""; 0]);
    }
}
