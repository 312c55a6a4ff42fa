//! Decoding of content codings, bounded by the size of the output.

use std::io::{self, Read};

use brotli_decompressor::Decompressor;
use flate2::read::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};
use hyper::header::{CONTENT_ENCODING, HeaderMap};

/// The value of `Accept-Encoding`.
pub(super) const CODINGS: &str = "gzip, br, deflate";

/// Bytes of the buffer between a decoder and its input.
const BUFFER_BYTES: usize = 4096;

/// A supported content coding (RFC 9110, 8.4.1; RFC 7932).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Coding {
    /// No coding.
    Identity,
    /// gzip, of one or several members.
    Gzip,
    Brotli,
    /// zlib, or bare deflate, which some servers send under the same name.
    Deflate,
}

impl Coding {
    /// Returns the coding of a response, or `None` for an unsupported one. Several codings on top of each other are
    /// unsupported: two of them can turn a small body into hours of work without output that a bound could stop.
    pub(super) fn of(headers: &HeaderMap) -> Option<Self> {
        let values: Vec<&str> =
            headers.get_all(CONTENT_ENCODING).iter().map(|value| value.to_str().ok()).collect::<Option<_>>()?;
        let names = values.iter().flat_map(|value| value.split(',')).map(str::trim);
        let mut names = names.filter(|name| !name.is_empty() && !name.eq_ignore_ascii_case("identity"));
        let coding = match names.next().map(str::to_ascii_lowercase).as_deref() {
            None => Self::Identity,
            Some("gzip" | "x-gzip") => Self::Gzip,
            Some("br") => Self::Brotli,
            Some("deflate") => Self::Deflate,
            Some(_) => return None,
        };
        names.next().is_none().then_some(coding)
    }

    /// Returns up to `bytes_max` bytes of the decoded body, one more if there are any, and the error before its end.
    pub(super) fn decode(self, bytes: &[u8], bytes_max: usize) -> (Vec<u8>, io::Result<()>) {
        let decoder: Box<dyn Read + '_> = match self {
            // An empty body has no coding: responses to HEAD name the coding that a body would have.
            _ if bytes.is_empty() => Box::new(bytes),
            Self::Identity => Box::new(bytes),
            Self::Gzip => Box::new(MultiGzDecoder::new(bytes)),
            Self::Brotli => Box::new(Decompressor::new(bytes, BUFFER_BYTES)),
            Self::Deflate if is_zlib(bytes) => Box::new(ZlibDecoder::new(bytes)),
            Self::Deflate => Box::new(DeflateDecoder::new(bytes)),
        };
        let mut decoded = Vec::new();
        let end = decoder.take(bytes_max as u64 + 1).read_to_end(&mut decoded);
        (decoded, end.map(drop))
    }
}

/// Returns whether the first two bytes are a header of zlib (RFC 1950, 2.2).
fn is_zlib(bytes: &[u8]) -> bool {
    matches!(bytes, [first, second, ..]
        if first & 0x0f == 8 && (u16::from(*first) << 8 | u16::from(*second)) % 31 == 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::{
        Compression,
        write::{DeflateEncoder, GzEncoder, ZlibEncoder},
    };
    use hyper::header::HeaderValue;
    use proptest::prelude::*;
    use std::io::Write;

    fn encoded(coding: Coding, bytes: &[u8]) -> Vec<u8> {
        let level = Compression::best();
        match coding {
            Coding::Gzip => {
                let mut encoder = GzEncoder::new(Vec::new(), level);
                encoder.write_all(bytes).unwrap();
                encoder.finish().unwrap()
            }
            Coding::Deflate => {
                let mut encoder = ZlibEncoder::new(Vec::new(), level);
                encoder.write_all(bytes).unwrap();
                encoder.finish().unwrap()
            }
            Coding::Identity => bytes.to_vec(),
            Coding::Brotli => unreachable!("there is no encoder here"),
        }
    }

    /// `hello` four times on one line, as Node.js 20 encodes it.
    const BROTLI: &[u8] = &[
        0x1b, 0x17, 0x00, 0xf8, 0x8d, 0x94, 0x6e, 0xde, 0x44, 0x55, 0x86, 0xd6, 0x0a, 0x20, 0x6c, 0x6f, 0x4a, 0x11,
        0x79, 0xe2, 0x80, 0xae, 0x16,
    ];

    /// Ten million zeros, also encoded by Node.js 20.
    const BROTLI_BOMB: &[u8] = &[
        0xcb, 0xff, 0xff, 0x3f, 0xf8, 0x27, 0x00, 0xe2, 0xb1, 0x40, 0x20, 0xf7, 0xfe, 0x2f, 0xff, 0x2c, 0x31, 0xf0,
        0x4f, 0x00, 0xc4, 0x61, 0x11, 0x80, 0x8e, 0x23, 0x06,
    ];

    #[test]
    fn content_codings_are_decoded() {
        for coding in [Coding::Identity, Coding::Gzip, Coding::Deflate] {
            let (decoded, end) = coding.decode(&encoded(coding, b"hello"), 100);
            assert_eq!((decoded.as_slice(), end.is_ok()), (&b"hello"[..], true), "{coding:?}");
        }
        assert_eq!(Coding::Brotli.decode(BROTLI, 100).0, b"hello hello hello hello\n");
        let mut bare = DeflateEncoder::new(Vec::new(), Compression::best());
        bare.write_all(b"hello").unwrap();
        assert_eq!(Coding::Deflate.decode(&bare.finish().unwrap(), 100).0, b"hello");
        let members = [encoded(Coding::Gzip, b"hel"), encoded(Coding::Gzip, b"lo")].concat();
        assert_eq!(Coding::Gzip.decode(&members, 100).0, b"hello");
    }

    #[test]
    fn decompression_stops_at_the_limit() {
        let zeros = vec![0; 10_000_000];
        for coding in [Coding::Gzip, Coding::Deflate] {
            let bomb = encoded(coding, &zeros);
            assert!(bomb.len() < 20_000);
            assert_eq!(coding.decode(&bomb, 1000).0.len(), 1001, "{coding:?}");
        }
        assert_eq!(Coding::Brotli.decode(BROTLI_BOMB, 1000).0.len(), 1001);
        assert_eq!(Coding::Brotli.decode(BROTLI_BOMB, 20_000_000).0.len(), zeros.len());
        assert_eq!(Coding::Identity.decode(&zeros, 1000).0.len(), 1001);
        assert_eq!(Coding::Identity.decode(&zeros[..1000], 1000).0.len(), 1000);
    }

    #[test]
    fn a_broken_body_keeps_the_bytes_before_the_error() {
        let whole = encoded(Coding::Gzip, &[b'x'; 10_000]);
        let (decoded, end) = Coding::Gzip.decode(&whole[..whole.len() - 4], 100_000);
        assert!(end.is_err() && decoded.iter().all(|byte| *byte == b'x'));
        for coding in [Coding::Gzip, Coding::Brotli, Coding::Deflate] {
            assert!(coding.decode(b"\xffhello, this is plain", 100).1.is_err(), "{coding:?}");
            assert_eq!(coding.decode(b"", 100).0, b"");
        }
    }

    #[test]
    fn a_single_content_coding_is_decoded() {
        let check = |values: &[&'static str], expected: Option<Coding>| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(CONTENT_ENCODING, HeaderValue::from_static(value));
            }
            assert_eq!(Coding::of(&headers), expected, "{values:?}");
        };
        check(&[], Some(Coding::Identity));
        check(&["GZip"], Some(Coding::Gzip));
        check(&["identity, x-gzip"], Some(Coding::Gzip));
        check(&[" br ,"], Some(Coding::Brotli));
        check(&["deflate"], Some(Coding::Deflate));
        check(&["gzip, gzip"], None);
        check(&["gzip", "br"], None);
        check(&["zstd"], None);
    }

    proptest! {
        #[test]
        fn decoding_any_bytes_is_bounded(bytes: Vec<u8>, bytes_max in 0usize..200) {
            for coding in [Coding::Identity, Coding::Gzip, Coding::Brotli, Coding::Deflate] {
                prop_assert!(coding.decode(&bytes, bytes_max).0.len() <= bytes_max + 1);
            }
        }
    }
}
