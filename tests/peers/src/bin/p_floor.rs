//! The least that a bulk transfer with QUIC's packets costs: what no implementation can leave out.
//!
//! ```text
//! p_floor receive ADDR BYTES      receives, and ends after so many bytes
//! p_floor send    ADDR BYTES
//! ```
//!
//! For each packet the sender copies the payload, seals it with AES-128-GCM, masks the header, and sends batches of 44 packets
//! with segmentation offload. The receiver unmasks, opens and copies. A datagram for each 256 KiB stands for acknowledgments.
//! There is no handshake, no loss recovery and no HTTP.

use std::{env, error::Error, net::SocketAddr};

use aws_lc_rs::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey, quic};
use lastbyte_udp::{Batch, Ecn, Options, SendError, Socket, Transmit, Waiter};

/// Flags, an 8-byte connection ID, and a 4-byte packet number.
const HEADER: usize = 13;
const TAG: usize = 16;
const DATAGRAM: usize = 1452;
const PAYLOAD: usize = DATAGRAM - HEADER - TAG;
const SEGMENTS: usize = 44;
/// The receiver answers after so many bytes.
const CREDIT: u64 = 256 << 10;
/// What may be on its way, in bytes.
const WINDOW: u64 = 1200 << 10;

struct Keys {
    packet: LessSafeKey,
    header: quic::HeaderProtectionKey,
}

impl Keys {
    fn new() -> Result<Self, Box<dyn Error>> {
        Ok(Self {
            packet: LessSafeKey::new(UnboundKey::new(&AES_128_GCM, &[7; 16])?),
            header: quic::HeaderProtectionKey::new(&quic::AES_128, &[9; 16])?,
        })
    }

    fn nonce(number: u32) -> Nonce {
        let mut nonce = [0; 12];
        nonce[8..].copy_from_slice(&number.to_be_bytes());
        Nonce::assume_unique_for_key(nonce)
    }

    fn mask(&self, packet: &mut [u8]) -> Result<(), Box<dyn Error>> {
        let mask = self.header.new_mask(&packet[HEADER..HEADER + 16])?;
        packet[0] ^= mask[0] & 0x1f;
        for (byte, mask) in packet[9..HEADER].iter_mut().zip(&mask[1..]) {
            *byte ^= mask;
        }
        Ok(())
    }

    fn seal(&self, packet: &mut [u8], number: u32, payload: &[u8]) -> Result<(), Box<dyn Error>> {
        let (header, body) = packet.split_at_mut(HEADER);
        header[0] = 0x43;
        header[1..9].fill(0x11);
        header[9..].copy_from_slice(&number.to_be_bytes());
        let (text, tag) = body.split_at_mut(PAYLOAD);
        text.copy_from_slice(payload);
        let sealed = self.packet.seal_in_place_separate_tag(
            Self::nonce(number),
            Aad::from(&*header),
            text,
        )?;
        tag.copy_from_slice(sealed.as_ref());
        self.mask(packet)
    }

    /// The payload.
    fn open<'a>(&self, packet: &'a mut [u8]) -> Result<&'a [u8], Box<dyn Error>> {
        self.mask(packet)?;
        let number = u32::from_be_bytes(packet[9..HEADER].try_into()?);
        let (header, body) = packet.split_at_mut(HEADER);
        Ok(self
            .packet
            .open_in_place(Self::nonce(number), Aad::from(&*header), body)?)
    }
}

fn send(remote: SocketAddr, bytes: u64) -> Result<(), Box<dyn Error>> {
    let socket = Socket::bind("127.0.0.1:0".parse()?, &Options::default())?;
    let keys = Keys::new()?;
    let application = vec![b'x'; PAYLOAD * 700];
    let (mut waiter, mut batch) = (Waiter::new()?, Batch::new());
    let mut buffer = vec![0; DATAGRAM * SEGMENTS];
    let (mut sent, mut credited, mut number) = (0u64, 0u64, 0u32);
    let mut payloads = application.chunks_exact(PAYLOAD).cycle();
    while credited + CREDIT < bytes {
        if sent < bytes && sent - credited < WINDOW {
            for packet in buffer.chunks_mut(DATAGRAM) {
                keys.seal(packet, number, payloads.next().ok_or("no payload")?)?;
                number = number.wrapping_add(1);
            }
            let mut from = 0;
            while from < buffer.len() {
                match socket.send(&Transmit {
                    remote,
                    local: None,
                    ecn: Ecn::NotEct,
                    bytes: &buffer[from..],
                    segment_len: DATAGRAM,
                }) {
                    Ok(()) => break,
                    Err(SendError::Full { sent }) => {
                        from += sent;
                        waiter.wait(&socket, true, None)?;
                    }
                    Err(error) => return Err(error.into()),
                }
            }
            sent += (PAYLOAD * SEGMENTS) as u64;
            continue;
        }
        waiter.wait(&socket, false, None)?;
        socket.receive(&mut batch)?;
        for received in batch.received() {
            for credit in received.bytes.chunks(received.segment_len) {
                credited = u64::from_le_bytes(credit.try_into()?);
            }
        }
    }
    println!("sent {sent} bytes");
    Ok(())
}

fn receive(local: SocketAddr, bytes: u64) -> Result<(), Box<dyn Error>> {
    let socket = Socket::bind(local, &Options::default())?;
    let keys = Keys::new()?;
    let mut application = vec![0; PAYLOAD * 700];
    let (mut waiter, mut batch) = (Waiter::new()?, Batch::new());
    let (mut total, mut credited, mut slot) = (0u64, 0u64, 0usize);
    while total + CREDIT < bytes {
        waiter.wait(&socket, false, None)?;
        socket.receive(&mut batch)?;
        let mut remote = None;
        for received in batch.received() {
            remote = Some(received.remote);
            for packet in received.bytes.chunks_mut(received.segment_len) {
                let payload = keys.open(packet)?;
                let at = slot % 700 * PAYLOAD;
                application[at..at + PAYLOAD].copy_from_slice(payload);
                slot += 1;
                total += payload.len() as u64;
            }
        }
        if let Some(remote) = remote
            && (total - credited >= CREDIT || total + CREDIT >= bytes)
        {
            credited = total;
            socket.send(&Transmit {
                remote,
                local: None,
                ecn: Ecn::NotEct,
                bytes: &total.to_le_bytes(),
                segment_len: 8,
            })?;
        }
    }
    println!("received {total} bytes");
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["send", remote, bytes] => send(remote.parse()?, bytes.parse()?),
        ["receive", local, bytes] => receive(local.parse()?, bytes.parse()?),
        _ => Err("usage: p_floor send|receive ADDR BYTES".into()),
    }
}
