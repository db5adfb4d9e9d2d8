//! `regent hash-password`.

use clap::Args;

#[derive(Debug, Args)]
pub struct HashPassword {
    /// The password; others may see it in the list of processes
    #[arg(short, long, value_name = "TEXT")]
    pub plaintext: Option<String>,
    /// How it is hashed
    #[arg(short, long, value_name = "NAME", default_value = "bcrypt", value_parser = ["argon2id", "bcrypt"])]
    pub algorithm: String,
    /// Each step doubles the time that a check takes; 12 is about a quarter of a second
    #[arg(long, value_name = "N", default_value_t = 12, value_parser = clap::value_parser!(u32).range(4..=31))]
    pub bcrypt_cost: u32,
    /// Passes of argon2id over its memory
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=32))]
    pub argon2id_time: u32,
    /// KiB of memory that each check by argon2id takes
    #[arg(long, value_name = "KIB", default_value_t = 47_104, value_parser = clap::value_parser!(u32).range(8..=1_048_576))]
    pub argon2id_memory: u32,
    /// Lanes of argon2id
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub argon2id_threads: u32,
    /// Bytes of a hash by argon2id
    #[arg(long, value_name = "BYTES", default_value_t = 32, value_parser = parse_keylen)]
    pub argon2id_keylen: usize,
}

fn parse_keylen(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(bytes @ 16..=64) => Ok(bytes),
        _ => Err("a hash has 16 to 64 bytes".to_owned()),
    }
}
