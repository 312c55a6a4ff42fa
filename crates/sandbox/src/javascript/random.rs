//! The random numbers of untrusted code: xoshiro256** (Blackman and Vigna, 2018), seeded by the caller.

/// The state of the generator.
pub(crate) struct Random {
    state: [u64; 4],
}

impl Random {
    /// Uses the seed as the state, in four little-endian words. A seed of zeros, which would yield only zeros, stands
    /// for the state `1, 2, 3, 4`.
    pub(crate) fn new(seed: &[u8; 32]) -> Random {
        let mut state = [1, 2, 3, 4];
        if seed.iter().any(|byte| *byte != 0) {
            for (word, bytes) in state.iter_mut().zip(seed.chunks_exact(8)) {
                *word = bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
            }
        }
        Random { state }
    }

    fn next_u64(&mut self) -> u64 {
        let [a, b, c, d] = &mut self.state;
        let result = b.wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        let shifted = *b << 17;
        *c ^= *a;
        *d ^= *b;
        *b ^= *c;
        *a ^= *d;
        *c ^= shifted;
        *d = d.rotate_left(45);
        result
    }

    /// Returns the next number of `Math.random`: 53 random bits, at least 0 and below 1.
    pub(crate) fn next_f64(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::Random;

    #[track_caller]
    fn check(seed: [u8; 32], expected: [u64; 3]) {
        let mut random = Random::new(&seed);
        assert_eq!([random.next_u64(), random.next_u64(), random.next_u64()], expected);
    }

    #[test]
    fn numbers_are_those_of_the_reference() {
        // The state 1, 2, 3, 4 is the published example of the reference implementation.
        let mut seed = [0; 32];
        [1, 2, 3, 4].iter().enumerate().for_each(|(index, byte)| seed[8 * index] = *byte);
        check(seed, [11520, 0, 1509978240]);
        check([0; 32], [11520, 0, 1509978240]);
    }

    #[test]
    fn numbers_are_at_least_zero_and_below_one() {
        let mut random = Random::new(&[0xff; 32]);
        assert!((0..10_000).all(|_| (0.0..1.0).contains(&random.next_f64())));
    }
}
