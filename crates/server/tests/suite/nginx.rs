//! What nginx answers for the same files, where it is installed.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    process::{Child, Command, Stdio},
};

use lastbyte_server::Site;

use crate::serving::{Folder, PATIENCE, Response, Serving};

/// Runs until it is dropped.
struct Nginx {
    child: Child,
    address: SocketAddr,
}

impl Drop for Nginx {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Nginx {
    fn start(folder: &Folder) -> Option<Self> {
        let free = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = free.local_addr().expect("an address");
        drop(free);
        let place = folder.0.display();
        let config = format!(
            "daemon off; master_process off; pid {place}/pid; error_log {place}/error;\n\
             events {{}}\n\
             http {{ access_log off; default_type application/octet-stream; if_modified_since before;\n\
             client_body_temp_path {place}/a; proxy_temp_path {place}/b; fastcgi_temp_path {place}/c;\n\
             uwsgi_temp_path {place}/d; scgi_temp_path {place}/e;\n\
             types {{ text/html html; text/css css; image/png png; }}\n\
             server {{ listen {address}; root {place}/www; absolute_redirect off; }} }}\n"
        );
        let config = folder.file("nginx.conf", config.as_bytes());
        let spawned = Command::new("nginx")
            .arg("-c")
            .arg(config)
            .arg("-e")
            .arg(folder.0.join("error"))
            .stdin(Stdio::null())
            .spawn();
        let mut child = match spawned {
            Ok(child) => child,
            Err(error) => {
                lastbyte_testkit::skip(&format!("no `nginx`: {error}"));
                return None;
            }
        };
        while TcpStream::connect(address).is_err() {
            let ended = child.try_wait().expect("a child");
            assert!(ended.is_none(), "nginx ended: {ended:?}");
            std::thread::yield_now();
        }
        Some(Self { child, address })
    }

    fn ask(&self, request: &str) -> Response {
        let mut stream = TcpStream::connect(self.address).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        stream.write_all(request.as_bytes()).expect("it is taken");
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).expect("an answer");
        Response::parse(&bytes)
    }
}

/// What must be the same.
fn essence(response: &Response) -> String {
    let field = |name: &str| response.field(name).unwrap_or("-").to_owned();
    let is_multipart = field("content-type").starts_with("multipart/byteranges");
    let is_good = matches!(response.status, 200 | 206);
    let mut essence = vec![format!(
        "{} location {}",
        response.status,
        field("location")
    )];
    if matches!(response.status, 200 | 206 | 304) {
        essence.push(format!(
            " modified {} tag {}",
            field("last-modified"),
            response.field("etag").is_some()
        ));
    }
    if is_multipart {
        let text = String::from_utf8_lossy(&response.body).to_lowercase();
        let ranges: Vec<&str> = text
            .lines()
            .filter(|line| line.starts_with("content-range"))
            .collect();
        essence.push(format!(" parts {}", ranges.join(",")));
    } else if is_good {
        essence.push(format!(
            " type {} length {} range {} body {:?}",
            field("content-type"),
            field("content-length"),
            field("content-range"),
            String::from_utf8_lossy(&response.body)
        ));
    } else {
        essence.push(format!(" range {}", field("content-range")));
    }
    essence.concat()
}

/// Of `/a.html`, whose tag stands for `{tag}`.
const FIELDS: &[&str] = &[
    "range: bytes=0-0",
    "range: bytes=2-4",
    "range: bytes=7-",
    "range: bytes=-3",
    "range: bytes=-30",
    "range: bytes=10-",
    "range: bytes=-0",
    "range: bytes=0-99",
    "range: bytes=0-1,-2",
    "range: bytes=1-2,4-5,8-8",
    "range: bytes=0-7,1-8,2-9",
    "range: lines=1-2",
    "range: bytes=20-,3-3",
    "if-none-match: {tag}",
    "if-none-match: W/{tag}",
    "if-none-match: *",
    "if-none-match: \"x\"",
    "if-none-match: \"x\", {tag}",
    "if-match: {tag}",
    "if-match: \"x\"",
    "if-match: *",
    "if-match: \"x\", {tag}",
    "if-modified-since: Sun, 06 Nov 1994 08:49:37 GMT",
    "if-modified-since: Sun, 06 Nov 1994 08:49:36 GMT",
    "if-modified-since: Mon, 07 Nov 1994 08:49:36 GMT",
    "if-modified-since: never",
    "if-unmodified-since: Sun, 06 Nov 1994 08:49:37 GMT",
    "if-unmodified-since: Sun, 06 Nov 1994 08:49:36 GMT",
    "if-none-match: \"x\"\r\nif-modified-since: Sun, 06 Nov 1994 08:49:37 GMT",
    "range: bytes=0-0\r\nif-range: {tag}",
    "range: bytes=0-0\r\nif-range: \"x\"",
    "range: bytes=0-0\r\nif-range: Sun, 06 Nov 1994 08:49:37 GMT",
    "range: bytes=0-0\r\nif-range: Sun, 06 Nov 1994 08:49:36 GMT",
    "range: bytes=0-0\r\nif-none-match: {tag}",
    "range: bytes=50-\r\nif-match: \"x\"",
];

#[test]
fn files_conditions_and_ranges_are_answered_like_nginx() {
    let folder = Folder::new();
    std::fs::create_dir_all(folder.0.join("www/inner")).expect("room");
    folder.file("www/a.html", b"0123456789");
    folder.file("www/index.html", b"index");
    folder.file("www/inner/b.css", b"p {}");
    folder.file("www/empty.png", b"");
    for name in ["a.html", "index.html", "inner/b.css", "empty.png"] {
        let path = folder.0.join("www").join(name);
        let file = std::fs::File::options()
            .write(true)
            .open(path)
            .expect("a file");
        let date = std::time::UNIX_EPOCH + std::time::Duration::from_secs(784_111_777);
        file.set_modified(date).expect("a date");
    }
    let Some(nginx) = Nginx::start(&folder) else {
        return;
    };
    let ours = Serving::site(Site::directory(&folder.0.join("www")).expect("a directory"));
    let mut cases = Vec::new();
    for path in [
        "/",
        "/a.html",
        "/inner/b.css",
        "/inner",
        "/inner?x=1",
        "/empty.png",
        "/nothing",
        "/a.html?q",
    ] {
        for method in ["GET", "HEAD"] {
            cases.push(format!("{method} {path}|"));
        }
    }
    for fields in FIELDS {
        cases.push(format!("GET /a.html|{fields}\r\n"));
    }
    let request = |case: &str, tag: &str| {
        let (line, fields) = case.split_once('|').expect("two parts");
        let fields = fields.replace("{tag}", tag);
        format!("{line} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{fields}\r\n")
    };
    let tag_of = |response: Response| response.field("etag").expect("a tag").to_owned();
    let tag = tag_of(ours.get("/a.html", ""));
    let nginx_tag = tag_of(nginx.ask(&request("GET /a.html|", "")));
    let mut differences = Vec::new();
    for case in &cases {
        let (our, its) = (
            essence(&ours.ask(&request(case, &tag))),
            essence(&nginx.ask(&request(case, &nginx_tag))),
        );
        if our != its {
            differences.push(format!("{case:?}\n  ours  {our}\n  nginx {its}"));
        }
    }
    // Where they differ on purpose: docs/serve.md says why.
    let expected: [&str; 0] = [];
    let unexpected: Vec<_> = differences
        .iter()
        .filter(|difference| !expected.iter().any(|known| difference.contains(known)))
        .collect();
    assert!(unexpected.is_empty(), "{unexpected:#?}");
    ours.end();
}
