//! What `lastbyte serve` serves: a directory, and objects by their size.

use std::{io, path::Path};

use lastbyte_http3::{Body, Request, Response};

use super::{
    files::{Directory, Found},
    generated::{Generated, size_of_path},
    handler::{Answer, Handler},
};

#[cfg(test)]
mod tests;

/// A directory, objects by size, or both: files come first.
#[derive(Clone, Debug)]
pub struct Site {
    directory: Option<Directory>,
    generates: bool,
}

impl Site {
    /// Objects by size alone: `/32k`, `/1m`, `/1g`, in powers of 1024; `/1000` is 1000 bytes.
    #[must_use]
    pub const fn generated() -> Self {
        Self {
            directory: None,
            generates: true,
        }
    }

    /// A directory, and objects by size where there is no file of that name.
    ///
    /// # Errors
    ///
    /// It is no directory, or cannot be read.
    pub fn directory(path: &Path) -> io::Result<Self> {
        Ok(Self {
            directory: Some(Directory::open(path)?),
            generates: true,
        })
    }

    fn get(&self, target: &str) -> Answer {
        let path = target.split(['?', '#']).next().unwrap_or(target);
        if let Some(directory) = &self.directory {
            match directory.find(path) {
                Found::File(source, content_type) => {
                    return Answer::source(&content_type, Box::new(source));
                }
                Found::Directory => return moved(&format!("{path}/")),
                Found::Failed => return Answer::text(500, "the file cannot be read\n"),
                Found::Nothing => {}
            }
        }
        match size_of_path(path).filter(|_| self.generates) {
            Some(len) => Answer::source("application/octet-stream", Box::new(Generated { len })),
            None => Answer::text(404, "not found\n"),
        }
    }
}

fn moved(to: &str) -> Answer {
    Answer {
        response: Response::new(301)
            .with("location", to)
            .with("content-length", "0"),
        body: Body::Empty,
        body_len: 0,
    }
}

impl Handler for Site {
    fn answer(&self, request: &Request) -> Answer {
        let target = request.path().unwrap_or("/");
        match request.method() {
            "GET" => self.get(target),
            "HEAD" => self.get(target).head_only(),
            _ => {
                let mut answer = Answer::text(405, "only GET and HEAD are answered here\n");
                answer.response = answer.response.with("allow", "GET, HEAD");
                answer
            }
        }
    }
}
