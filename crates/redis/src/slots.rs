//! Which server of a cluster has which keys (the cluster specification of Redis: 16,384 slots, each of one server).

use crate::Address;
use redis::{Connection, ErrorKind, FromRedisValue, RedisError, RedisResult, Value, cmd};

const SLOTS: u16 = 16_384;

/// What one server has said of all.
pub(crate) struct SlotTable {
    ranges: Vec<Range>,
    /// Replicas too.
    nodes: Vec<Address>,
}

struct Range {
    first: u16,
    last: u16,
    primary: Address,
}

/// The slot of a key. Of a key with `{…}` in it only that counts, so that several can be of one slot.
pub(crate) fn slot(key: &str) -> u16 {
    crc16(tag(key).unwrap_or(key).as_bytes()) % SLOTS
}

impl SlotTable {
    /// What the server says whom the connection goes to. `asked`: its address, which it may not know itself.
    pub fn ask(connection: &mut Connection, asked: &Address) -> RedisResult<Self> {
        let answer: Vec<Vec<Value>> = cmd("CLUSTER").arg("SLOTS").query(connection)?;
        let mut table = Self { ranges: Vec::new(), nodes: Vec::new() };
        for range in answer {
            let [first, last, nodes @ ..] = range.as_slice() else { return Err(no_table()) };
            let nodes: Vec<_> = nodes.iter().map(|node| address(node, asked)).collect::<RedisResult<_>>()?;
            let primary = nodes.first().ok_or_else(no_table)?.clone();
            let (first, last) = (u16::from_redis_value_ref(first)?, u16::from_redis_value_ref(last)?);
            table.ranges.push(Range { first, last, primary });
            table.nodes.extend(nodes);
        }
        Ok(table)
    }

    /// The primary of the slot. `None`: nobody has it.
    pub fn primary(&self, slot: u16) -> Option<&Address> {
        let has = |range: &&Range| (range.first..=range.last).contains(&slot);
        self.ranges.iter().find(has).map(|range| &range.primary)
    }

    /// A server has said that another one has the slot.
    pub fn move_to(&mut self, slot: u16, primary: Address) {
        self.ranges.insert(0, Range { first: slot, last: slot, primary });
    }

    /// The servers that it names.
    pub fn nodes(&self) -> &[Address] {
        &self.nodes
    }
}

/// A host, a port, and what is not needed. Without a host, or with one that is not known, the server that was asked is at
/// the address where it was asked.
fn address(node: &Value, asked: &Address) -> RedisResult<Address> {
    let node = Vec::<Value>::from_redis_value_ref(node)?;
    let [host, port, ..] = node.as_slice() else { return Err(no_table()) };
    let host =
        Option::<String>::from_redis_value_ref(host)?.filter(|host| !matches!(host.as_str(), "" | "?"));
    Ok(Address { host: host.unwrap_or_else(|| asked.host.clone()), port: u16::from_redis_value_ref(port)? })
}

fn no_table() -> RedisError {
    (ErrorKind::Parse, "this is no answer to CLUSTER SLOTS").into()
}

fn tag(key: &str) -> Option<&str> {
    let (_, behind) = key.split_once('{')?;
    behind.split_once('}').map(|(tag, _)| tag).filter(|tag| !tag.is_empty())
}

/// CRC-16/XMODEM.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |sum, byte| {
        (0..8).fold(sum ^ (u16::from(*byte) << 8), |sum, _| {
            if sum & 0x8000 == 0 { sum << 1 } else { (sum << 1) ^ 0x1021 }
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_those_of_redis() {
        // Appendix A of the specification, and what CLUSTER KEYSLOT says.
        assert_eq!(crc16(b"123456789"), 0x31c3);
        assert_eq!(slot("123456789"), 0x31c3);
        assert_eq!(slot("foo"), 12_182);
        assert_eq!(slot(""), 0);
    }

    #[test]
    fn keys_of_one_tag_have_one_slot() {
        assert_eq!(slot("{user1000}.following"), slot("{user1000}.followers"));
        assert_eq!(slot("a{foo}b{bar}"), slot("foo"));
        assert_eq!(slot("a{{foo}b"), slot("{foo"));
        // An empty tag, and one that does not end, are none.
        for key in ["foo{}{bar}", "foo{bar"] {
            assert_ne!(slot(key), slot("bar"), "{key}");
        }
    }
}
