//! The qlog files of `serve`, `get` and `sim`, and what the drafts define.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use serde_json::Value;

use crate::serving::{Serving, folder, lastbyte, stderr};

/// The events, and their fields: `?` is optional, `*` permits further ones, `[T]` is an array, `a|b` are the values of a text.
///
/// Of draft-ietf-quic-qlog-main-schema-03, draft-ietf-quic-qlog-quic-events-03 and draft-ietf-quic-qlog-h3-events-04, which are of version
/// 0.3. The exceptions: `new` of `key_updated` is required there, and is a secret; `raw` of a STREAM frame is that of the next
/// draft, as tools expect; frames of the draft on acknowledgment frequency have no definition; `migration_state_updated` and `priority_update` are those of later drafts.
const EVENTS: &str = "
transport:parameters_set owner?:local|remote original_destination_connection_id?:hex initial_source_connection_id?:hex \
 retry_source_connection_id?:hex disable_active_migration?:bool max_idle_timeout?:u64 max_udp_payload_size?:u32 \
 ack_delay_exponent?:u16 max_ack_delay?:u16 active_connection_id_limit?:u32 initial_max_data?:u64 \
 initial_max_stream_data_bidi_local?:u64 initial_max_stream_data_bidi_remote?:u64 initial_max_stream_data_uni?:u64 \
 initial_max_streams_bidi?:u64 initial_max_streams_uni?:u64 *
transport:packet_sent header:Header frames?:[Frame] raw?:Raw is_mtu_probe_packet?:bool
transport:packet_received header:Header frames?:[Frame] raw?:Raw
transport:packet_dropped header?:Header raw?:Raw trigger?:key_unavailable|unknown_connection_id|header_parse_error|\
payload_decrypt_error|protocol_violation|dos_prevention|unsupported_version|unexpected_packet|duplicate|invalid_initial
transport:packet_buffered header?:Header raw?:Raw trigger?:backpressure|keys_unavailable
recovery:packet_lost header?:Header trigger?:reordering_threshold|time_threshold|pto_expired
recovery:metrics_updated min_rtt?:float smoothed_rtt?:float latest_rtt?:float rtt_variance?:float congestion_window?:u64 \
 bytes_in_flight?:u64 ssthresh?:u64 pacing_rate?:u64
recovery:congestion_state_updated old?:text new:text
recovery:loss_timer_updated timer_type?:ack|pto packet_number_space?:initial|handshake|application_data \
 event_type:set|expired|cancelled delta?:float
connectivity:connection_state_updated old?:text new:attempted|handshake_started|handshake_complete|handshake_confirmed|closed
connectivity:connection_closed owner?:local|remote connection_code?:u32 application_code?:u32 reason?:text \
 trigger?:clean|handshake_timeout|idle_timeout|error|stateless_reset|version_mismatch|application
connectivity:mtu_updated old?:u16 new:u16
connectivity:migration_state_updated new:probing_started|probing_successful|probing_abandoned|migration_complete
security:key_updated key_type:KeyType generation?:u32 trigger?:tls|remote_update|local_update
security:key_discarded key_type:KeyType generation?:u32 trigger?:tls|remote_update|local_update
http:parameters_set owner?:local|remote max_field_section_size?:u64 max_table_capacity?:u64 blocked_streams_count?:u64 *
http:frame_created stream_id:u64 length?:u64 frame:Http
http:frame_parsed stream_id:u64 length?:u64 frame:Http
";

/// The types of fields. A frame has that of its `frame_type`, with `Frame.` or `Http.` before.
const TYPES: &str = "
Header packet_type:initial|handshake|0RTT|1RTT packet_number?:u64
Raw length?:u64 payload_length?:u64
KeyType server_initial_secret|client_initial_secret|server_handshake_secret|client_handshake_secret|client_0rtt_secret|\
server_1rtt_secret|client_1rtt_secret
Frame.padding length?:u32 payload_length:u32
Frame.ping
Frame.ack ack_delay?:float acked_ranges?:[[u64]] ect0?:u64 ect1?:u64 ce?:u64
Frame.reset_stream stream_id:u64 error_code:u32 final_size:u64
Frame.stop_sending stream_id:u64 error_code:u32
Frame.crypto offset:u64 length:u64
Frame.new_token token:Token
Token length?:u32
Frame.stream stream_id:u64 offset:u64 length:u64 fin?:bool raw?:Raw
Frame.max_data maximum:u64
Frame.max_stream_data stream_id:u64 maximum:u64
Frame.max_streams stream_type:unidirectional|bidirectional maximum:u64
Frame.data_blocked limit:u64
Frame.stream_data_blocked stream_id:u64 limit:u64
Frame.streams_blocked stream_type:unidirectional|bidirectional limit:u64
Frame.new_connection_id sequence_number:u32 retire_prior_to:u32 connection_id:hex
Frame.retire_connection_id sequence_number:u32
Frame.path_challenge
Frame.path_response
Frame.connection_close error_space?:transport|application error_code?:u32
Frame.handshake_done
Frame.immediate_ack
Frame.ack_frequency sequence_number:u64 ack_eliciting_threshold:u64 requested_max_ack_delay:u64 reordering_threshold:u64
Http.data
Http.headers headers:[Field]
Field name:text value:text
Http.settings settings:[Setting]
Setting name:text value:u64
Http.goaway id:u64
Http.reserved length?:u64 frame_type_value:u64
Http.unknown frame_type_value:u64
Http.priority_update stream_id?:u64 priority_field_value:text
";

/// A name and what follows it, for each line.
fn table(text: &'static str) -> BTreeMap<&'static str, &'static str> {
    let lines = text.trim().lines();
    let lines = lines.map(|line| line.split_once(' ').unwrap_or((line, "")));
    lines.collect()
}

struct Schema {
    events: BTreeMap<&'static str, &'static str>,
    types: BTreeMap<&'static str, &'static str>,
}

impl Schema {
    fn new() -> Self {
        Self {
            events: table(EVENTS),
            types: table(TYPES),
        }
    }

    /// Why an object does not have these fields, if so.
    fn fields(&self, object: &Value, fields: &str, known: &[&str]) -> Result<(), String> {
        let object = object.as_object().ok_or("not an object")?;
        let mut known: BTreeSet<&str> = known.iter().copied().collect();
        let mut is_open = false;
        for field in fields.split_whitespace() {
            let Some((name, kind)) = field.split_once(':') else {
                is_open |= field == "*";
                continue;
            };
            let required = name.strip_suffix('?').is_none();
            let name = name.trim_end_matches('?');
            known.insert(name);
            match object.get(name) {
                Some(value) => self
                    .value(value, kind)
                    .map_err(|why| format!("{name}: {why}"))?,
                None if required => return Err(format!("{name} is missing")),
                None => {}
            }
        }
        match object.keys().find(|key| !known.contains(key.as_str())) {
            Some(key) if !is_open => Err(format!("{key} is not defined")),
            _ => Ok(()),
        }
    }

    /// Why a value is not of this type, if so.
    fn value(&self, value: &Value, kind: &str) -> Result<(), String> {
        let integer = |bits: u32| {
            value
                .as_u64()
                .is_some_and(|it| it.checked_shr(bits).unwrap_or(0) == 0)
        };
        let is_hex = |text: &str| {
            text.len().is_multiple_of(2) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
        };
        let is_right = match kind {
            "u16" => integer(16),
            "u32" => integer(32),
            "u64" => value.is_u64(),
            "float" => value.is_number(),
            "bool" => value.is_boolean(),
            "text" => value.is_string(),
            "hex" => value.as_str().is_some_and(is_hex),
            "Frame" | "Http" => {
                let name = value["frame_type"].as_str().unwrap_or_default();
                let fields = self.types.get(format!("{kind}.{name}").as_str());
                let fields = fields.ok_or_else(|| format!("unknown frame: {value}"))?;
                let right = self.fields(value, fields, &["frame_type"]);
                return right.map_err(|why| format!("{name}: {why}"));
            }
            kind if kind.starts_with('[') => {
                let of = &kind[1..kind.len() - 1];
                let all = value.as_array().ok_or("not an array")?;
                return all.iter().try_for_each(|one| self.value(one, of));
            }
            kind if self.types.contains_key(kind) => {
                let of = self.types[kind];
                return if of.contains(':') {
                    self.fields(value, of, &[])
                } else {
                    self.value(value, of)
                };
            }
            kind => value
                .as_str()
                .is_some_and(|text| kind.split('|').any(|one| one == text)),
        };
        if is_right {
            Ok(())
        } else {
            Err(format!("{value} is not {kind}"))
        }
    }

    /// Checks a file, and adds the names of its events.
    fn check(&self, file: &Path, seen: &mut BTreeSet<String>) {
        let text = fs::read_to_string(file).expect("a qlog file");
        let mut records = text.split('\u{1e}').skip(1).map(|record| {
            assert!(record.ends_with('\n'), "RFC 7464 §2.2");
            serde_json::from_str::<Value>(record).expect("JSON")
        });
        let header = records.next().expect("a header");
        assert_eq!(header["qlog_version"], "0.3");
        assert_eq!(header["qlog_format"], "JSON-SEQ");
        let trace = &header["trace"];
        let right = self.fields(&trace["vantage_point"], "type:client|server", &[]);
        assert_eq!(right, Ok(()), "{trace}");
        let fields =
            "ODCID:hex group_id:hex time_format:relative reference_time:u64 protocol_type:[text]";
        assert_eq!(self.fields(&trace["common_fields"], fields, &[]), Ok(()));
        let mut before = 0.0;
        for record in records {
            let right = self.fields(&record, "time:float name:text", &["data"]);
            assert_eq!(right, Ok(()), "{record}");
            let time = record["time"].as_f64().expect("checked above");
            assert!(time >= before, "{record} after {before}");
            before = time;
            let name = record["name"].as_str().expect("checked above");
            let fields = self.events.get(name);
            let fields = fields.unwrap_or_else(|| panic!("not an event: {record}"));
            assert_eq!(
                self.fields(&record["data"], fields, &[]),
                Ok(()),
                "{record}"
            );
            seen.insert(name.to_owned());
        }
    }
}

fn files(folder: &Path) -> Vec<std::path::PathBuf> {
    let files = fs::read_dir(folder).expect("a folder");
    let mut files: Vec<_> = files.map(|file| file.expect("a file").path()).collect();
    files.sort();
    files
}

/// Files of `serve` and `get` of the same connections, and of simulated ones with losses, marks, uploads and resumption.
#[test]
fn qlog_files_have_the_events_and_fields_of_the_drafts() {
    let folder = folder("qlog-schema");
    let serving = Serving::start(&folder, &["--self-signed", "--qlog", "s"]);
    for path in ["/1000", "/300kB"] {
        let flags = ["--http", "3", "--qlog", "c", "-o", "/dev/null"];
        let got = serving.get(&folder, path, &flags);
        assert!(got.status.success(), "{}", stderr(&got));
    }
    assert_eq!(serving.end().0, 0);
    for words in [
        "sim --network lte --arm rapid-start --size 1MB --qlog q1 --loss 2% --handshake full,0rtt --requests 2",
        "sim --network vdsl --arm prague --aqm dualpi2 --ecn --size 1MB --qlog q2 --upload",
    ] {
        let words: Vec<&str> = words.split(' ').collect();
        let simulated = lastbyte(&folder, &words);
        assert!(simulated.status.success(), "{}", stderr(&simulated));
    }
    let schema = Schema::new();
    let mut seen = BTreeSet::new();
    for name in ["s", "c", "q1", "q2"] {
        let files = files(&folder.join(name));
        assert!(files.len() >= 2, "{name}");
        for file in files {
            let name = file.to_string_lossy().into_owned();
            if !name.ends_with("-failed.sqlog") {
                schema.check(&file, &mut seen);
            }
        }
    }
    for name in [
        "transport:packet_sent",
        "transport:packet_received",
        "transport:parameters_set",
        "recovery:packet_lost",
        "recovery:metrics_updated",
        "recovery:congestion_state_updated",
        "connectivity:connection_closed",
        "security:key_discarded",
        "http:frame_created",
        "http:frame_parsed",
        "http:parameters_set",
    ] {
        assert!(seen.contains(name), "{name}: {seen:?}");
    }
    one_picture_of_both_ends(&folder);
}

/// The files of a connection's ends are found among those of others.
fn one_picture_of_both_ends(folder: &Path) {
    let plotted = lastbyte(folder, &["plot", "s", "c", "-o", "both.svg"]);
    let printed = stderr(&plotted);
    assert_eq!(
        printed.matches(" have the same connection ID: ").count(),
        2,
        "{printed}"
    );
    let picture = fs::read_to_string(folder.join("both.svg")).expect("a picture");
    assert!(picture.contains("One-way delay"), "{printed}");
    // Over a simulated path of 19.5 ms each way, up to what the queue adds.
    let ends = ["client", "server"].map(|end| format!("q2/vdsl_prague_1000000_1_0_{end}.sqlog"));
    let plotted = lastbyte(folder, &["plot", &ends[0], &ends[1], "-o", "up.svg"]);
    let printed = stderr(&plotted);
    assert!(printed.contains("are equal, 19.5"), "{printed}");
}
