//! The memory of all `cache` directives.

use crate::words::{self, Line};
use regent_config::{CacheDisk, CacheMemory, escaped};

/// `None`: it is what it is without the option.
pub(crate) fn line(cache: &CacheMemory) -> Option<Line> {
    let CacheMemory { memory, largest_object, disk } = cache;
    let usual = CacheMemory::default();
    let size = |name: &str, value: u64| Line::new([name]).word(words::size(value));
    let lines = [
        (*memory != usual.memory).then(|| size("memory", *memory)),
        (*largest_object != usual.largest_object).then(|| size("largest_object", *largest_object)),
        disk.as_ref().map(|CacheDisk { directory, size: bytes, files, largest_object }| {
            let files = Line::new(["files"]).word(files.to_string());
            let directory = escaped(&directory.display().to_string());
            Line::new(["disk"])
                .word(directory)
                .word(words::size(*bytes))
                .block(vec![files, size("largest_object", *largest_object)])
        }),
    ];
    (*cache != usual).then(|| Line::new(["cache"]).block(lines.into_iter().flatten().collect()))
}
