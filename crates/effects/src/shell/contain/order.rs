//! The message that tells the helper which script to run.
//!
//! It is sent on standard input and not in arguments, which every user of a machine can read.

/// A script with its environment. No text contains a NUL character.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Order {
    /// The path of bash.
    pub(crate) bash: String,
    /// The script.
    pub(crate) command: String,
    /// The whole environment; the last value of a repeated name wins.
    pub(crate) variables: Vec<(String, String)>,
}

impl Order {
    /// Encodes the length in four bytes, little-endian, then the texts, each terminated by NUL: bash, the script,
    /// `NAME=value`.
    pub(crate) fn encode(&self) -> Option<Vec<u8>> {
        let mut bytes = vec![0; 4];
        let mut add = |text: &str| bytes.extend(text.bytes().chain([0]));
        add(&self.bash);
        add(&self.command);
        self.variables.iter().for_each(|(name, value)| add(&format!("{name}={value}")));
        let length = u32::try_from(bytes.len() - 4).ok()?;
        bytes[..4].copy_from_slice(&length.to_le_bytes());
        Some(bytes)
    }

    /// Decodes a complete message. An incomplete one comes from a parent that died while it wrote, and runs nothing.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let (length, rest) = bytes.split_first_chunk::<4>()?;
        if u32::from_le_bytes(*length) as usize != rest.len() {
            return None;
        }
        let text = std::str::from_utf8(rest).ok()?.strip_suffix('\0')?;
        let mut texts = text.split('\0').map(str::to_owned);
        let (bash, command) = (texts.next()?, texts.next()?);
        let variables = texts.map(|text| text.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned())));
        Some(Self { bash, command, variables: variables.collect::<Option<_>>()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_comes_whole_or_not_at_all() {
        let variables = vec![("A".into(), "x=y\nz".into()), ("B".into(), String::new())];
        let order = Order { bash: "/bin/bash".into(), command: "echo \"$A\"".into(), variables };
        let bytes = order.encode().unwrap();
        assert_eq!(Order::decode(&bytes), Some(order));
        for length in 0..bytes.len() {
            assert_eq!(Order::decode(&bytes[..length]), None, "{length}");
        }
        assert_eq!(Order::decode(&[bytes, vec![0]].concat()), None);
    }
}
