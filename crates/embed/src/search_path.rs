//! The search path for libraries that a program has, replaced where it stands: nothing else of the file changes. (ELF, 64 bits,
//! little-endian: gABI chapters 4 and 5.)

const PROGRAM_HEADERS: usize = 32;
const PROGRAM_HEADER_SIZE: usize = 54;
const PROGRAM_HEADER_COUNT: usize = 56;
const PT_LOAD: u32 = 1;
const PT_DYNAMIC: u32 = 2;
const DT_STRTAB: u64 = 5;
const DT_RPATH: u64 = 15;
const DT_RUNPATH: u64 = 29;

/// A part of the file, and where it is in memory.
struct Segment {
    kind: u32,
    offset: usize,
    address: u64,
    size: usize,
}

/// Makes this the search path of a program, also for what its libraries need (DT_RPATH). `false`: it has none that is at least
/// as long, and nothing has changed.
pub(crate) fn replace(program: &mut [u8], directory: &str) -> bool {
    let Some((entry, text)) = find(program, directory.len()) else { return false };
    program[entry..entry + 8].copy_from_slice(&DT_RPATH.to_le_bytes());
    program[text..text + directory.len()].copy_from_slice(directory.as_bytes());
    program[text + directory.len()] = 0;
    true
}

/// Where the entry is that names the path, and where the path is, which has room for so many bytes and their end.
fn find(program: &[u8], length: usize) -> Option<(usize, usize)> {
    if !program.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let segments = segments(program)?;
    let dynamic = segments.iter().find(|segment| segment.kind == PT_DYNAMIC)?;
    let entries = (dynamic.offset..dynamic.offset.checked_add(dynamic.size)?).step_by(16);
    let (mut strings, mut path) = (None, None);
    for at in entries {
        match (u64_at(program, at)?, u64_at(program, at + 8)?) {
            (0, _) => break,
            (DT_STRTAB, address) => strings = Some(address),
            (DT_RPATH | DT_RUNPATH, offset) => path = Some((at, offset)),
            _ => {}
        }
    }
    let (entry, offset) = path?;
    let address = strings?.checked_add(offset)?;
    let holds = |segment: &&Segment| {
        segment.kind == PT_LOAD
            && address >= segment.address
            && address - segment.address < segment.size as u64
    };
    let segment = segments.iter().find(holds)?;
    let text = segment.offset.checked_add(usize::try_from(address - segment.address).ok()?)?;
    let end = program.get(text..)?.iter().position(|byte| *byte == 0)?;
    (end >= length).then_some((entry, text))
}

fn segments(program: &[u8]) -> Option<Vec<Segment>> {
    let first = usize::try_from(u64_at(program, PROGRAM_HEADERS)?).ok()?;
    let size = usize::from(u16_at(program, PROGRAM_HEADER_SIZE)?);
    let count = usize::from(u16_at(program, PROGRAM_HEADER_COUNT)?);
    let segment = |number: usize| {
        let at = first.checked_add(number.checked_mul(size)?)?;
        let kind = u32::from_le_bytes(program.get(at..at + 4)?.try_into().ok()?);
        Some(Segment {
            kind,
            offset: usize::try_from(u64_at(program, at + 8)?).ok()?,
            address: u64_at(program, at + 16)?,
            size: usize::try_from(u64_at(program, at + 32)?).ok()?,
        })
    };
    (0..count).map(segment).collect()
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at.checked_add(8)?)?.try_into().ok()?))
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_without_a_search_path_and_what_is_no_program_stay_as_they_are() {
        for bytes in [std::fs::read("/bin/ls").unwrap(), b"\x7fELF\x02\x01 cut off".to_vec(), Vec::new()] {
            let mut changed = bytes.clone();
            assert!(!replace(&mut changed, "$ORIGIN/lib"));
            assert!(changed == bytes);
        }
    }
}
