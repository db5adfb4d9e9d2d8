//! Small changes of seeds, the same in each run: what libFuzzer does better, for where it cannot be had.

use crate::Corpus;

/// Inputs without end.
pub struct Mutator<'a> {
    corpus: &'a Corpus,
    random: Random,
}

/// The longest input, in bytes.
const LONGEST: usize = 4096;

impl<'a> Mutator<'a> {
    pub fn new(corpus: &'a Corpus) -> Self {
        Self { corpus, random: Random(0x9E37_79B9_7F4A_7C15) }
    }

    fn change(&mut self, input: &mut Vec<u8>) {
        let at = self.random.below(input.len() + 1);
        match self.random.below(7) {
            0 => {
                if let Some(byte) = input.get_mut(at) {
                    *byte ^= 1 << self.random.below(8);
                }
            }
            1 => input.insert(at, self.random.next() as u8),
            2 => {
                let end = (at + 1 + self.random.below(8)).min(input.len());
                input.drain(at.min(end)..end);
            }
            3 | 4 => self.insert_word(input, at),
            5 => {
                let end = (at + self.random.below(32)).min(input.len());
                let part = input[at..end].to_vec();
                let to = self.random.below(input.len() + 1);
                input.splice(to..to, part);
            }
            _ => self.insert_part_of_a_seed(input, at),
        }
    }

    fn insert_word(&mut self, input: &mut Vec<u8>, at: usize) {
        if !self.corpus.words.is_empty() {
            let word = self.random.below(self.corpus.words.len());
            input.splice(at..at, self.corpus.words[word].iter().copied());
        }
    }

    fn insert_part_of_a_seed(&mut self, input: &mut Vec<u8>, at: usize) {
        let seed = &self.corpus.seeds[self.random.below(self.corpus.seeds.len())];
        let start = self.random.below(seed.len() + 1);
        let end = (start + self.random.below(64)).min(seed.len());
        input.splice(at..at, seed[start..end].iter().copied());
    }
}

impl Iterator for Mutator<'_> {
    type Item = Vec<u8>;

    fn next(&mut self) -> Option<Vec<u8>> {
        let mut input = self.corpus.seeds[self.random.below(self.corpus.seeds.len())].clone();
        for _ in 0..=self.random.below(8) {
            self.change(&mut input);
        }
        input.truncate(LONGEST);
        Some(input)
    }
}

/// Marsaglia's xorshift.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 8
    }

    fn below(&mut self, bound: usize) -> usize {
        self.next() as usize % bound
    }
}
