//! Packets of Git's protocol (gitprotocol-common(5)): four hexadecimal digits of the length, then the data.

use bytes::{Buf, Bytes, BytesMut};

use super::{error::GitError, limits::PACKET_BYTES_MAX};

/// One message of the protocol, up to 65,516 bytes of data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Packet {
    /// Data, without the length.
    Data(Bytes),
    /// `0000`: the end of a message.
    Flush,
    /// `0001`: the end of a section.
    Delimiter,
    /// `0002`: the end of a response of a connection without state.
    ResponseEnd,
}

/// Collects received bytes to packets.
#[derive(Debug, Default)]
pub(super) struct Packets(BytesMut);

impl Packets {
    /// Adds received bytes.
    pub(super) fn add(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    /// Returns the next complete packet.
    pub(super) fn next(&mut self) -> Result<Option<Packet>, GitError> {
        let Some(digits) = self.0.first_chunk::<4>() else { return Ok(None) };
        let text = std::str::from_utf8(digits).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let length = text.and_then(|text| usize::from_str_radix(text, 16).ok());
        let length = length.ok_or_else(|| GitError::protocol("a packet does not begin with its length"))?;
        let special = match length {
            0 => Packet::Flush,
            1 => Packet::Delimiter,
            2 => Packet::ResponseEnd,
            4..=PACKET_BYTES_MAX => {
                if self.0.len() < length {
                    return Ok(None);
                }
                self.0.advance(4);
                return Ok(Some(Packet::Data(self.0.split_to(length - 4).freeze())));
            }
            _ => return Err(GitError::protocol("the length of a packet is invalid")),
        };
        self.0.advance(4);
        Ok(Some(special))
    }

    /// Returns true if no incomplete packet is left.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The text of a data packet without its line feed.
pub(super) fn line(data: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(data).ok()?;
    Some(text.strip_suffix('\n').unwrap_or(text))
}

/// A command of protocol version 2: capabilities, a delimiter, arguments, a flush.
pub(super) fn command(capabilities: &[String], arguments: &[String]) -> Vec<u8> {
    let section =
        |texts: &[String]| -> String { texts.iter().map(|text| format!("{:04x}{text}\n", text.len() + 5)).collect() };
    format!("{}0001{}0000", section(capabilities), section(arguments)).into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_collected_from_any_parts() {
        let bytes = b"0009hello0001000600000000020005\n";
        for size in 1..bytes.len() {
            let (mut packets, mut found) = (Packets::default(), Vec::new());
            for part in bytes.chunks(size) {
                packets.add(part);
                while let Some(packet) = packets.next().unwrap() {
                    found.push(packet);
                }
            }
            let data = |text: &'static str| Packet::Data(Bytes::from_static(text.as_bytes()));
            let expected =
                [data("hello"), Packet::Delimiter, data("00"), Packet::Flush, Packet::ResponseEnd, data("\n")];
            assert_eq!(found, expected, "{size}");
            assert!(packets.is_empty());
        }
    }

    #[test]
    fn invalid_lengths_are_refused() {
        for bytes in [&b"zzzz"[..], b"0003", b"+123", b"ffff", b" 12a"] {
            let mut packets = Packets::default();
            packets.add(bytes);
            assert!(packets.next().is_err(), "{bytes:?}");
        }
    }

    #[test]
    fn a_command_has_two_sections() {
        let message = command(&["command=fetch".into()], &["done".into()]);
        assert_eq!(message, b"0012command=fetch\n00010009done\n0000");
    }
}
