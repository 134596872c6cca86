//! Metrics in the text format of Prometheus, and the balancer's own health.
//!
//! Owns the listener, with a bounded number of connections, each of which gets one response.

use std::{collections::BTreeMap, fmt::Write as _, rc::Rc, time::Duration};

use lastbyte_balancer::{Counter, Forwarder};
use lastbyte_server::tcp::Admission;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::watch,
    time,
};

use super::tcp;

/// Maximum connections.
const CONNECTIONS: usize = 16;
/// Time limit for a request and its response.
const PATIENCE: Duration = Duration::from_secs(5);
/// Maximum length of a request's head.
const HEAD_MAX: usize = 8192;

pub(super) struct Sources {
    pub(super) forwarder: Rc<Forwarder>,
    pub(super) tcp: Rc<tcp::Counts>,
    /// Whether each checked server is up, by its ID.
    pub(super) up: watch::Receiver<BTreeMap<u64, bool>>,
}

pub(super) async fn serve(listener: TcpListener, sources: Sources) {
    let admission = Admission::new(CONNECTIONS, CONNECTIONS);
    let sources = Rc::new(sources);
    loop {
        let Ok((stream, remote)) = listener.accept().await else {
            time::sleep(PATIENCE).await;
            continue;
        };
        let Some(admitted) = admission.admit(remote.ip()).await else {
            continue;
        };
        let sources = Rc::clone(&sources);
        tokio::task::spawn_local(async move {
            // A client that is slow or leaves is no failure of the balancer.
            let _ = time::timeout(PATIENCE, respond(stream, &sources)).await;
            drop(admitted);
        });
    }
}

async fn respond(mut stream: TcpStream, sources: &Sources) -> std::io::Result<()> {
    let mut head = [0; HEAD_MAX];
    let mut len = 0;
    while !head[..len].windows(4).any(|end| end == b"\r\n\r\n") {
        match stream.read(&mut head[len..]).await? {
            // It ended, or there is no room left.
            0 => return Ok(()),
            read => len += read,
        }
    }
    let (status, body) = if head.starts_with(b"GET /metrics ") {
        ("200 OK", text(sources))
    } else if head.starts_with(b"GET /healthz ") {
        ("200 OK", "ok\n".to_owned())
    } else {
        (
            "404 Not Found",
            "expected /metrics or /healthz\n".to_owned(),
        )
    };
    let response = format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/plain; version=0.0.4; charset=utf-8\r\n\
         content-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(response.as_bytes()).await?;
    stream.shutdown().await
}

fn text(sources: &Sources) -> String {
    let mut text = String::new();
    let count = |counter| sources.forwarder.count(counter);
    let mut family = "";
    let mut all = Counter::ALL;
    all.sort_by_key(|counter| counter.name());
    for counter in all {
        let name = counter.name();
        let of = name.split('{').next().unwrap_or(name);
        if of != family {
            let _ = writeln!(text, "# TYPE {of} counter");
            family = of;
        }
        let _ = writeln!(text, "{name} {}", count(counter));
    }
    let closed = count(Counter::FlowsExpired) + count(Counter::FlowsDisplaced);
    let tcp = &sources.tcp;
    for (name, kind, value) in [
        (
            "lastbyte_lb_flows_open",
            "gauge",
            count(Counter::FlowsOpened).saturating_sub(closed),
        ),
        (
            "lastbyte_lb_tcp_connections_total",
            "counter",
            tcp.accepted.get(),
        ),
        ("lastbyte_lb_tcp_failed_total", "counter", tcp.failed.get()),
        (
            "lastbyte_lb_tcp_refused_total",
            "counter",
            tcp.refused.get(),
        ),
        ("lastbyte_lb_tcp_open", "gauge", tcp.open.get()),
    ] {
        let _ = writeln!(text, "# TYPE {name} {kind}\n{name} {value}");
    }
    let (table, sent) = sources.forwarder.sent();
    let up = sources.up.borrow();
    let mut of_servers = |name: &str, kind: &str, value: &dyn Fn(usize, u64) -> String| {
        let _ = writeln!(text, "# TYPE {name} {kind}");
        for (index, server) in table.servers().iter().enumerate() {
            let (id, value) = (server.id, value(index, server.id));
            let _ = writeln!(text, "{name}{{server=\"{id}\"}} {value}");
        }
    };
    let name = "lastbyte_lb_server_sent_datagrams_total";
    of_servers(name, "counter", &|index, _| {
        sent.get(index).copied().unwrap_or_default().to_string()
    });
    of_servers("lastbyte_lb_server_up", "gauge", &|_, id| {
        u8::from(up.get(&id).copied().unwrap_or(true)).to_string()
    });
    of_servers("lastbyte_lb_server_share", "gauge", &|index, _| {
        format!("{:.4}", table.share(index) as f64 / 65_536.0)
    });
    text
}
