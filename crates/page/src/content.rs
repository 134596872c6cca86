//! Bodies from which a real browser reproduces the dependencies of a page.
//!
//! | resource | body |
//! |---|---|
//! | document | tags for what its bytes trigger, at the described offsets, with spaces between; a script for the rest |
//! | style sheet | `@import` for style sheets, `@font-face` and `background` for fonts and images, which elements of the document use |
//! | script | a loop for the time of its execution, then requests for what it triggers, after their delays |
//! | image | a GIF of one pixel, with zeros behind it |
//! | others | zeros; a browser downloads a font before it finds that it is not valid |
//!
//! The texts are made once per page. A body of any size takes memory for its text only.
//!
//! Not reproduced: the order of requests with the same trigger, execution times other than those of scripts, and delays after
//! style sheets: the browser's own layout takes the place of these. A script uses a timer for requests after a delay.

use core::fmt::Write as _;

use crate::page::{Kind, Page, Trigger};

/// The response to the request of one resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content {
    /// The media type.
    pub media_type: &'static str,
    /// The target of a redirect.
    pub location: Option<String>,
    /// Texts by offset. The bytes between them are filler.
    texts: Vec<(u64, String)>,
    filling: u8,
    len: u64,
}

/// The responses to all requests of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contents {
    /// By resource.
    pub contents: Vec<Content>,
    /// Values of the `link` fields of a 103 (Early Hints) response to the request of the document (RFC 8297).
    pub hints: Vec<String>,
    /// The number of resources to which no other resource refers, because a browser has no way to do so.
    pub unreachable: usize,
    /// The number of bodies longer than described, because their text needs more room.
    pub longer: usize,
}

impl Content {
    /// The number of bytes of the body.
    pub const fn len(&self) -> u64 {
        self.len
    }

    /// Whether the body has no bytes.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Fills `buffer` with the bytes of the body from `offset` on.
    pub fn read_at(&self, offset: u64, buffer: &mut [u8]) {
        buffer.fill(self.filling);
        let end = offset + buffer.len() as u64;
        let first = self
            .texts
            .partition_point(|(at, text)| at + text.len() as u64 <= offset);
        for (at, text) in &self.texts[first..] {
            if *at >= end {
                break;
            }
            let from = offset.max(*at);
            let until = end.min(at + text.len() as u64);
            let part = &text.as_bytes()[(from - at) as usize..(until - at) as usize];
            buffer[(from - offset) as usize..(until - offset) as usize].copy_from_slice(part);
        }
    }
}

/// The responses of `page`, which has passed [`Page::check`]. The URL of resource `R` is `https://HOST[:PORT]/INDEX/R`.
pub fn contents(page: &Page, index: usize, port: u16) -> Contents {
    let mut children = vec![Vec::new(); page.resources.len()];
    for (child, resource) in page.resources.iter().enumerate() {
        if let Some(trigger) = resource.trigger {
            children[usize::from(trigger.of())].push(child);
        }
    }
    let mut writer = Writer {
        page,
        index,
        port,
        children,
        is_referenced: vec![false; page.resources.len()],
    };
    writer.is_referenced[0] = true;
    let redirects = usize::from(page.document());
    let contents: Vec<Content> = (0..page.resources.len())
        .map(|resource| {
            if resource < redirects {
                writer.is_referenced[resource + 1] = true;
                writer.finish(resource, Some(writer.url(resource + 1)), Vec::new())
            } else {
                let texts = writer.texts(resource);
                writer.finish(resource, None, texts)
            }
        })
        .collect();
    let described = page.resources.iter().map(|resource| resource.body);
    let hinted = (0..page.resources.len()).filter(|it| page.resources[*it].is_hinted);
    Contents {
        hints: hinted.filter_map(|it| writer.hint(it)).collect(),
        longer: contents
            .iter()
            .zip(described)
            .filter(|(content, described)| content.len > *described)
            .count(),
        unreachable: writer.is_referenced.iter().filter(|it| !**it).count(),
        contents,
    }
}

/// How deeply requests by scripts are nested in each other's callbacks.
const DEPTH_MAX: usize = 64;

/// A GIF of one pixel. All bytes are below 128.
const PIXEL: &str = "GIF89a\x01\0\x01\0\0\0\0,\0\0\0\0\x01\0\x01\0\0\x02\x02D\x01\0;";

/// Functions for scripts. `B` works for a time. `I` requests a resource: element or way, URL, delay, what to do once it is complete.
const FUNCTIONS: &str = "function B(t){t+=performance.now();while(performance.now()<t);}\
function I(k,u,d,f){if(d)return setTimeout(I,d,k,u,0,f);\
if(k=='fetch'||k=='low')return fetch(u,{priority:k=='low'?k:'auto'}).then(r=>r.arrayBuffer()).then(f);\
if(k=='font')return new FontFace('x','url('+u+')').load().then(f,f);\
let e=document.createElement(k);e.onload=e.onerror=f||null;\
if(k=='link'){e.rel='stylesheet';e.href=u}else e.src=u;document.documentElement.append(e)}";

struct Writer<'a> {
    page: &'a Page,
    index: usize,
    port: u16,
    children: Vec<Vec<usize>>,
    is_referenced: Vec<bool>,
}

impl Writer<'_> {
    fn kind(&self, resource: usize) -> Kind {
        self.page.resources[resource].kind
    }

    /// The URL without its scheme.
    fn url(&self, resource: usize) -> String {
        let host = &self.page.hosts[usize::from(self.page.resources[resource].host)].name;
        let index = self.index;
        // Quotes and spaces have no place in the name of a host, and would end the attribute.
        let host: String = host.chars().filter(|it| is_of_host(*it)).collect();
        match self.port {
            443 => format!("//{host}/{index}/{resource}"),
            port => format!("//{host}:{port}/{index}/{resource}"),
        }
    }

    /// The value of a `link` field that asks for a resource.
    fn hint(&self, resource: usize) -> Option<String> {
        let kind = match self.kind(resource) {
            Kind::Stylesheet => "style",
            Kind::Script => "script",
            Kind::Image => "image",
            Kind::Font => "font; crossorigin",
            Kind::Fetch => "fetch; crossorigin",
            Kind::Document | Kind::Media | Kind::Other => return None,
        };
        Some(format!(
            "<https:{}>; rel=preload; as={kind}",
            self.url(resource)
        ))
    }

    /// The texts of a body, with the least offset of each.
    fn texts(&mut self, resource: usize) -> Vec<(u64, String)> {
        match self.kind(resource) {
            Kind::Document => self.document(resource),
            Kind::Stylesheet => vec![(0, self.style(resource))],
            Kind::Script => vec![(0, self.script(resource))],
            Kind::Image => vec![(0, PIXEL.to_owned())],
            Kind::Font | Kind::Media | Kind::Fetch | Kind::Other => Vec::new(),
        }
    }

    fn finish(
        &self,
        resource: usize,
        location: Option<String>,
        texts: Vec<(u64, String)>,
    ) -> Content {
        let description = &self.page.resources[resource];
        let (media_type, filling) = match description.kind {
            Kind::Document => ("text/html; charset=utf-8", b' '),
            Kind::Stylesheet => ("text/css", b' '),
            Kind::Script => ("text/javascript", b' '),
            Kind::Font => ("font/woff2", 0),
            Kind::Image => ("image/gif", 0),
            Kind::Media | Kind::Fetch | Kind::Other => ("application/octet-stream", 0),
        };
        let mut placed: Vec<(u64, String)> = Vec::new();
        let mut end = 0;
        for (offset, text) in texts {
            let at = end.max(offset);
            end = at + text.len() as u64;
            placed.push((at, text));
        }
        Content {
            media_type,
            location: location.map(|url| format!("https:{url}")),
            texts: placed,
            filling,
            len: description.body.max(end),
        }
    }

    fn document(&mut self, document: usize) -> Vec<(u64, String)> {
        let mut tags: Vec<(u64, usize)> = Vec::new();
        let mut after = Vec::new();
        for child in self.children[document].clone() {
            match self.page.resources[child].trigger {
                Some(Trigger::Bytes { offset, .. }) => tags.push((offset, child)),
                _ => after.push(child),
            }
        }
        tags.sort_unstable();
        let blocking = |(_, child): &(u64, usize)| self.page.resources[*child].is_blocking;
        let in_head = tags.iter().rposition(blocking).map_or(0, |last| last + 1);
        let mut head = format!(
            "<!DOCTYPE html><meta charset=utf-8><title>{}</title><link rel=icon href=data:,><script>{FUNCTIONS}",
            self.index
        );
        if !after.is_empty() {
            let calls = self.calls(&after, 0);
            let _ = write!(head, "addEventListener('DOMContentLoaded',()=>{{{calls}}})");
        }
        head.push_str("</script>");
        let mut body = String::from("<body><p>Page</p>");
        // Below the fold, so that the browser does not take all images for visible.
        body.push_str("<div style=height:9999px></div>");
        for styled in 0..self.page.resources.len() {
            if self.is_styled(styled) && self.document_of(styled) == document {
                let _ = write!(body, "<i class=r{styled}>a</i>");
            }
        }
        let mut texts = Vec::new();
        for (offset, child) in &tags[..in_head] {
            let url = self.url(*child);
            match self.kind(*child) {
                // Elements of the body would end the head.
                Kind::Image => {
                    texts.push((*offset, format!("<link rel=preload as=image href={url}>")));
                    body.push_str(&self.tag(*child));
                }
                Kind::Document => body.push_str(&self.tag(*child)),
                _ => texts.push((*offset, self.tag(*child))),
            }
        }
        // A document without its own bytes has them after the end of the described ones.
        texts.insert(0, (0, head));
        texts.push((0, body));
        for (offset, child) in &tags[in_head..] {
            texts.push((*offset, self.tag(*child)));
        }
        texts
    }

    /// The tag by which a document refers to a resource.
    fn tag(&mut self, resource: usize) -> String {
        self.is_referenced[resource] = true;
        let url = self.url(resource);
        let description = &self.page.resources[resource];
        let is_urgent = description.priority.urgency <= 1;
        let is_synchronous = description.is_blocking || description.priority.urgency <= 2;
        let mut tag = match description.kind {
            Kind::Document => format!("<iframe src={url}"),
            Kind::Stylesheet => format!("<link rel=stylesheet href={url}"),
            Kind::Script if is_synchronous => return format!("<script src={url}></script>"),
            Kind::Script => return format!("<script async src={url}></script>"),
            Kind::Image if is_urgent => format!("<img fetchpriority=high src={url}"),
            Kind::Image => format!("<img src={url}"),
            Kind::Font => format!("<link rel=preload as=font crossorigin href={url}"),
            Kind::Fetch => format!("<link rel=preload as=fetch crossorigin href={url}"),
            Kind::Media | Kind::Other => format!("<link rel=prefetch href={url}"),
        };
        let calls = self.callback(resource, 0);
        if !calls.is_empty() {
            let _ = write!(tag, " onload=\"{calls}\"");
        }
        tag.push_str(match self.kind(resource) {
            Kind::Document => "></iframe>",
            _ => ">",
        });
        tag
    }

    fn style(&mut self, style: usize) -> String {
        let (mut imports, mut rules) = (String::new(), String::new());
        for child in self.children[style].clone() {
            let url = self.url(child);
            // Writing to a `String` cannot fail.
            let _ = match self.kind(child) {
                Kind::Stylesheet => write!(imports, "@import url({url});"),
                Kind::Font => write!(
                    rules,
                    "@font-face{{font-family:f{child};src:url({url})}}.r{child}{{font-family:f{child}}}"
                ),
                Kind::Image => write!(rules, ".r{child}{{background:url({url})}}"),
                _ => continue,
            };
            self.is_referenced[child] = true;
        }
        imports + &rules
    }

    fn script(&mut self, script: usize) -> String {
        let work = self.page.resources[script].work;
        let children = self.children[script].clone();
        let calls = self.calls(&children, 0);
        if work.is_zero() {
            calls
        } else {
            format!("B({});{calls}", work.as_secs_f64() * 1e3)
        }
    }

    /// Script that requests resources, each after its delay.
    fn calls(&mut self, resources: &[usize], depth: usize) -> String {
        let mut text = String::new();
        if depth > DEPTH_MAX {
            return text;
        }
        for resource in resources {
            self.is_referenced[*resource] = true;
            let way = match self.kind(*resource) {
                Kind::Document => "iframe",
                Kind::Stylesheet => "link",
                Kind::Script => "script",
                Kind::Image => "img",
                Kind::Font => "font",
                Kind::Fetch => "fetch",
                Kind::Media | Kind::Other => "low",
            };
            let delay = self.page.resources[*resource].delay.as_millis();
            let _ = write!(text, "I('{way}','{}',{delay}", self.url(*resource));
            let calls = self.callback(*resource, depth + 1);
            if !calls.is_empty() {
                let _ = write!(text, ",()=>{{{calls}}}");
            }
            text.push_str(");");
        }
        text
    }

    /// Script that triggers resources on behalf of a resource whose own body cannot.
    fn callback(&mut self, resource: usize, depth: usize) -> String {
        let children = self.children[resource].iter().copied();
        let children: Vec<usize> = match self.kind(resource) {
            Kind::Document | Kind::Script => Vec::new(),
            Kind::Stylesheet => children.filter(|child| !self.is_of_style(*child)).collect(),
            _ => children.collect(),
        };
        self.calls(&children, depth)
    }

    /// Whether a style sheet can refer to it.
    fn is_of_style(&self, resource: usize) -> bool {
        matches!(
            self.kind(resource),
            Kind::Stylesheet | Kind::Font | Kind::Image
        )
    }

    /// Whether an element must use it, so that a browser requests what a style sheet refers to.
    fn is_styled(&self, resource: usize) -> bool {
        let by = self.page.resources[resource].trigger.map(Trigger::of);
        by.is_some_and(|by| self.kind(usize::from(by)) == Kind::Stylesheet)
            && matches!(self.kind(resource), Kind::Font | Kind::Image)
    }

    /// The document to which a resource belongs.
    fn document_of(&self, resource: usize) -> usize {
        let mut at = resource;
        while let Some(trigger) = self.page.resources[at].trigger {
            at = usize::from(trigger.of());
            if self.kind(at) == Kind::Document {
                break;
            }
        }
        at
    }
}

const fn is_of_host(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '.' | '-' | '_')
}

#[cfg(test)]
mod tests;
