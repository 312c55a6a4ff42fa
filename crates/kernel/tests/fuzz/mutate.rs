//! A simple deterministic mutator: changes bytes, words or parts of seed inputs. The same random seed gives the same
//! bytes.

/// Words with a meaning for one of the targets.
const WORDS: [&str; 48] = [
    "@",
    "@@",
    "@a",
    "@a.b[0]",
    "@input.x",
    "@item",
    "@index",
    "@vars.v",
    "@ctx.now",
    "@nobody",
    "{",
    "}",
    "[",
    "]",
    ":",
    ",",
    "\"",
    "\n",
    "\n  - ",
    "\t",
    "null",
    "true",
    "-1",
    "1e999",
    "18446744073709551616",
    "\"type\":\"loop\",",
    "\"type\":\"parallel\",",
    "\"forEach\":{\"ref\":\"@input.l\"},",
    "\"while\":{\"ref\":\"@index\",\"lt\":3},",
    "\"action\":{\"return\":true},",
    "\"needs\":[\"a\"],",
    "\"edges\":[{\"from\":\"a\",\"to\":\"b\"}],",
    "\"nodes\":[],",
    "\"order\":\"dataflow\",",
    "\"steps\":[],",
    "\"id\":\"a\",",
    "\"name\":\"a\",",
    "\"when\":",
    "\"not\":",
    "\"all\":[",
    "\"in\":[",
    "\"$ref\":\"#\",",
    "\"$ref\":\"#/properties/a\",",
    "\"properties\":{",
    "\"additionalProperties\":false,",
    "&x ",
    "*x",
    "\u{feff}\u{85}\u{2028}é",
];

/// The maximum length of a generated input in bytes.
const BYTES_MAX: usize = 16 * 1024;

/// A pseudorandom number generator (xorshift64*), identical on all platforms.
pub(crate) struct Numbers(u64);

impl Numbers {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16
    }

    /// Returns a number below a bound, which must be above 0.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }
}

/// Returns a seed input with some changes.
pub(crate) fn mutated(seeds: &[Vec<u8>], numbers: &mut Numbers) -> Vec<u8> {
    let mut bytes = seeds[numbers.below(seeds.len())].clone();
    for _ in 0..=numbers.below(6) {
        change(&mut bytes, seeds, numbers);
        bytes.truncate(BYTES_MAX);
    }
    bytes
}

fn change(bytes: &mut Vec<u8>, seeds: &[Vec<u8>], numbers: &mut Numbers) {
    let (at, length) = (numbers.below(bytes.len() + 1), numbers.below(16));
    let end = (at + length).min(bytes.len());
    match numbers.below(8) {
        0 if at < bytes.len() => bytes[at] ^= 1 << numbers.below(8),
        1 if at < bytes.len() => bytes[at] = numbers.below(256) as u8,
        2 => drop(bytes.drain(at..end)),
        3 => {
            let piece = bytes[at..end].to_vec();
            bytes.splice(at..at, piece);
        }
        4 => {
            let other = &seeds[numbers.below(seeds.len())];
            let from = numbers.below(other.len() + 1);
            let to = (from + numbers.below(64)).min(other.len());
            bytes.splice(at..end, other[from..to].iter().copied());
        }
        5 => {
            let other = &seeds[numbers.below(seeds.len())];
            let from = numbers.below(other.len() + 1);
            bytes.splice(at.., other[from..].iter().copied());
        }
        _ => {
            let word = WORDS[numbers.below(WORDS.len())];
            bytes.splice(at..at, word.bytes());
        }
    }
}
