//! Parts of pages: header, warnings, facts, and the document around them.

use core::fmt::Write as _;

use crate::svg::escaped;

/// The style of pages, light and dark.
pub(crate) const STYLE: &str = include_str!("document/page.css");

/// The title, the line below it, and the warnings, each unless it is empty.
pub(crate) fn header(title: &str, subtitle: &str, warnings: &[String]) -> String {
    let mut body = format!("<header><h1>{}</h1>\n", escaped(title));
    if !subtitle.is_empty() {
        let _ = writeln!(body, "<p>{}</p>", with_code(subtitle));
    }
    body.push_str("</header>\n");
    if !warnings.is_empty() {
        body.push_str("<div class=\"warning\"><ul>\n");
        for warning in warnings {
            let _ = writeln!(body, "<li>{}</li>", with_code(warning));
        }
        body.push_str("</ul></div>\n");
    }
    body
}

/// A sentence in markup: what is between two backticks is code.
pub(crate) fn with_code(sentence: &str) -> String {
    let (mut out, mut rest) = (String::new(), sentence);
    while let Some((before, code, after)) = rest.split_once('`').and_then(|(before, rest)| {
        let (code, after) = rest.split_once('`')?;
        Some((before, code, after))
    }) {
        let _ = write!(out, "{}<code>{}</code>", escaped(before), escaped(code));
        rest = after;
    }
    out + &escaped(rest)
}

/// The settings of a run, as names and values.
pub(crate) fn facts(facts: &[(String, String)], body: &mut String) {
    body.push_str("<section><h2>Run</h2><dl class=\"facts\">\n");
    for (name, value) in facts {
        let (name, value) = (escaped(name), escaped(value));
        let _ = writeln!(body, "<div><dt>{name}</dt><dd>{value}</dd></div>");
    }
    body.push_str("</dl></section>\n");
}

/// A table that scrolls where it is too wide. The first cell of a row is its heading, and sentences wrap.
pub(crate) fn table(header: &[String], rows: &[Vec<String>], body: &mut String) {
    body.push_str("<div class=\"scroll\"><table><thead><tr>");
    for name in header {
        let _ = write!(body, "<th>{}</th>", escaped(name));
    }
    body.push_str("</tr></thead><tbody>\n");
    for row in rows {
        body.push_str("<tr>");
        for (column, cell) in row.iter().enumerate() {
            let (begin, end) = match column {
                0 => ("<th>", "</th>"),
                _ if cell.split(' ').count() > 4 => ("<td class=\"sentence\">", "</td>"),
                _ => ("<td>", "</td>"),
            };
            let _ = write!(body, "{begin}{}{end}", with_code(cell));
        }
        body.push_str("</tr>\n");
    }
    body.push_str("</tbody></table></div>\n");
}

/// The script of a page.
pub(crate) struct Script<'a> {
    /// Its data, as JSON that is safe in a page.
    pub(crate) data: &'a str,
    /// Its program.
    pub(crate) program: &'a str,
}

/// The page with this title, style sheets and body, and a script if it has one. It loads nothing from the network.
pub(crate) fn page(
    title: &str,
    styles: &[&str],
    body: &str,
    script: Option<&Script<'_>>,
) -> String {
    let title = escaped(title);
    let style = styles.concat();
    let permission = script.map_or("", |_| " script-src 'unsafe-inline';");
    let script = script.map_or_else(String::new, |Script { data, program }| {
        format!(
            "<script type=\"application/json\" id=\"data\">{data}</script>\n<script>\n{program}</script>\n"
        )
    });
    format!(
        r#"<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="generator" content="lastbyte">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline';{permission} img-src data:">
<title>{title}</title>
<style>
{style}</style>
</head>
<body>
{body}{script}</body>
</html>
"#
    )
}
