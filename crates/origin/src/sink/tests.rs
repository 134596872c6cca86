use core::task::{Context, Poll, Waker};

use bytes::Bytes;

use super::*;
use crate::{
    budget::{Budget, Limits},
    exchange::{ResponsePart, exchange},
    handler::Version,
};

/// The status and text of the answer to a request with these pieces.
fn upload(sink: Sink, method: &str, pieces: Vec<Piece>) -> Option<(u16, String)> {
    let request = Request::new(method, "https", "localhost", "/");
    let peer = Peer {
        remote: "192.0.2.1:5000".parse().expect("an address"),
        version: Version::Http3,
        is_early: false,
    };
    let answer = match sink.handle(&request, &peer) {
        HandlerResponse::Now(answer) => answer,
        HandlerResponse::After(..) | HandlerResponse::Hinted(..) => panic!("no delay"),
        HandlerResponse::Task(task) => {
            let budget = Budget::new(Limits::default()).connection();
            let (exchange, channels) = exchange(&budget);
            for piece in pieces {
                channels.incoming.push(piece);
            }
            drop(channels.incoming);
            task(exchange);
            let context = &mut Context::from_waker(Waker::noop());
            match channels.outgoing.poll_next(context) {
                Poll::Ready(Some(ResponsePart::Whole(answer))) => answer,
                Poll::Ready(None) => return None,
                _ => panic!("a whole answer"),
            }
        }
    };
    let mut text = vec![0; answer.body_len() as usize];
    if let Some(body) = &answer.body {
        body.read_at(0, &mut text).expect("it has them");
    }
    Some((
        answer.response.status(),
        String::from_utf8(text).expect("text"),
    ))
}

fn data(len: usize) -> Piece {
    Piece::Data(Bytes::from(vec![0; len]))
}

#[test]
fn uploads_are_counted_up_to_their_limit() {
    let sink = Sink::new(1000);
    let counted = upload(sink, "PUT", vec![data(600), data(400), Piece::End]);
    assert_eq!(counted, Some((200, "{\"bytes\":1000}\n".to_owned())));
    let empty = upload(sink, "POST", vec![Piece::End]);
    assert_eq!(empty, Some((200, "{\"bytes\":0}\n".to_owned())));
    let long = upload(sink, "POST", vec![data(600), data(401), Piece::End]);
    assert_eq!(long.expect("an answer").0, 413);
    for pieces in [vec![], vec![data(600)]] {
        let (status, text) = upload(sink, "POST", pieces).expect("an answer");
        assert_eq!((status, &*text), (400, "The request body ended early\n"));
    }
}

#[test]
fn other_methods_are_refused() {
    let sink = Sink::new(1000);
    assert_eq!(upload(sink, "GET", Vec::new()).expect("an answer").0, 405);
    assert_eq!(upload(sink, "OPTIONS", Vec::new()).expect("one").0, 204);
}
