//! The message that tells the helper which program to run.
//!
//! It is sent on standard input and not in arguments, which every user of a machine can read.

/// A program with its environment. No text contains a NUL character.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Order {
    /// The program: a path, or a name in the `PATH` of the variables.
    pub(crate) program: String,
    /// One text for each, after the program's name.
    pub(crate) arguments: Vec<String>,
    /// The whole environment; the last value of a repeated name wins.
    pub(crate) variables: Vec<(String, String)>,
    /// True if the program reads what follows the message on standard input. Its input is empty otherwise.
    pub(crate) keeps_input: bool,
}

/// The first byte of a message: whether the input is kept.
const KEEPS: char = 'k';
const CLOSES: char = 'c';

impl Order {
    /// Encodes the length in four bytes, little-endian, then the texts, each terminated by NUL: `k` or `c` with the number
    /// of arguments, the program, the arguments, `NAME=value`.
    pub(crate) fn encode(&self) -> Option<Vec<u8>> {
        let mut bytes = vec![0; 4];
        let mut add = |text: &str| bytes.extend(text.bytes().chain([0]));
        let input = if self.keeps_input { KEEPS } else { CLOSES };
        add(&format!("{input}{}", self.arguments.len()));
        add(&self.program);
        self.arguments.iter().for_each(|argument| add(argument));
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
        let (head, program) = (texts.next()?, texts.next()?);
        let (keeps_input, count) = match (head.strip_prefix(KEEPS), head.strip_prefix(CLOSES)) {
            (Some(count), _) => (true, count),
            (_, Some(count)) => (false, count),
            _ => return None,
        };
        let count: usize = count.parse().ok()?;
        let arguments: Vec<String> = texts.by_ref().take(count).collect();
        let variables = texts.map(|text| text.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned())));
        let variables = variables.collect::<Option<_>>()?;
        (arguments.len() == count).then_some(Self { program, arguments, variables, keeps_input })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_incomplete_order_is_rejected() {
        let variables = vec![("A".into(), "x=y\nz".into()), ("B".into(), String::new())];
        let arguments = vec!["-c".into(), "echo \"$A\"".into(), String::new()];
        for keeps_input in [true, false] {
            let (variables, arguments) = (variables.clone(), arguments.clone());
            let order = Order { program: "/bin/bash".into(), arguments, variables, keeps_input };
            let bytes = order.encode().unwrap();
            assert_eq!(Order::decode(&bytes), Some(order));
            for length in 0..bytes.len() {
                assert_eq!(Order::decode(&bytes[..length]), None, "{length}");
            }
            assert_eq!(Order::decode(&[bytes, vec![0]].concat()), None);
        }
    }

    #[test]
    fn a_wrong_argument_count_is_rejected() {
        let text = b"c3\0/bin/true\0one\0";
        let bytes = [&u32::try_from(text.len()).unwrap().to_le_bytes()[..], text].concat();
        assert_eq!(Order::decode(&bytes), None);
    }
}
