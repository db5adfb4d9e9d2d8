//! The numbers of functions and paths, and their texts.

use crate::ffi;
use regent_wire::control::ProfiledFunction;
use std::collections::HashMap;

/// Functions that a profile names at most; the others are [`OTHER`].
const MOST_FUNCTIONS: usize = 20_000;
/// Paths, likewise.
const MOST_PATHS: usize = 256;
/// What stands for the rest.
const OTHER: &str = "(other)";
/// Looks that the text behind an address is trusted for: scripts that opcache does not keep come and go.
const TRUSTED_LOOKS: u64 = 50;
/// Bytes of a name or file.
const LONGEST: usize = 512;

/// Texts by their numbers, and numbers by what they are known as.
#[derive(Default)]
pub struct Names {
    looks: u64,
    /// With the look that the text was read in.
    by_address: HashMap<ffi::Function, (u32, u64)>,
    functions: Interned<ProfiledFunction>,
    paths: Interned<String>,
}

impl Names {
    pub fn begin_look(&mut self) {
        self.looks += 1;
    }

    pub fn function(&mut self, function: &ffi::Function) -> u32 {
        match self.by_address.get(function) {
            Some((number, read)) if self.looks - read < TRUSTED_LOOKS => *number,
            _ => self.read(function),
        }
    }

    fn read(&mut self, function: &ffi::Function) -> u32 {
        let number = self.functions.number(read(function), MOST_FUNCTIONS, || ProfiledFunction {
            name: OTHER.to_owned(),
            file: String::new(),
        });
        // Addresses are used anew where scripts are compiled anew.
        if self.by_address.len() > 2 * MOST_FUNCTIONS {
            self.by_address.clear();
        }
        self.by_address.insert(*function, (number, self.looks));
        number
    }

    pub fn path(&mut self, path: &str) -> u32 {
        self.paths.number(path.to_owned(), MOST_PATHS, || OTHER.to_owned())
    }

    /// Functions and paths in the order of their numbers.
    pub fn into_texts(self) -> (Vec<ProfiledFunction>, Vec<String>) {
        (self.functions.values, self.paths.values)
    }
}

fn read(function: &ffi::Function) -> ProfiledFunction {
    let text = |read: unsafe extern "C" fn(*const ffi::Function, *mut std::ffi::c_char, usize) -> usize| {
        let mut bytes = [0; LONGEST];
        // SAFETY: law 5: buffers of ours, for the time of the call.
        let length = unsafe { read(function, bytes.as_mut_ptr().cast(), bytes.len()) };
        // Behind a NUL byte, PHP makes the names of classes without one different from each other.
        let name = bytes[..length.min(LONGEST)].split(|byte| *byte == 0).next().unwrap_or_default();
        String::from_utf8_lossy(name).into_owned()
    };
    ProfiledFunction { name: text(ffi::regent_php_function_name), file: text(ffi::regent_php_function_file) }
}

struct Interned<T> {
    values: Vec<T>,
    numbers: HashMap<T, u32>,
}

impl<T> Default for Interned<T> {
    fn default() -> Self {
        Self { values: Vec::new(), numbers: HashMap::new() }
    }
}

impl<T: Clone + Eq + std::hash::Hash> Interned<T> {
    /// That of `other` once there are too many.
    fn number(&mut self, value: T, most: usize, other: impl FnOnce() -> T) -> u32 {
        if let Some(number) = self.numbers.get(&value) {
            return *number;
        }
        if self.values.len() >= most {
            let other = other();
            return self.numbers.get(&other).copied().unwrap_or_else(|| self.add(other));
        }
        self.add(value)
    }

    fn add(&mut self, value: T) -> u32 {
        let number = self.values.len() as u32;
        self.values.push(value.clone());
        self.numbers.insert(value, number);
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beyond_the_bound_all_paths_are_one() {
        let mut names = Names::default();
        for i in 0..MOST_PATHS + 10 {
            names.path(&format!("/{i}"));
        }
        assert_eq!(names.path("/3"), 3);
        assert_eq!(names.path("/new"), MOST_PATHS as u32);
        assert_eq!(names.path("/newer"), MOST_PATHS as u32);
        let (_, paths) = names.into_texts();
        assert_eq!((paths.len(), paths[MOST_PATHS].as_str()), (MOST_PATHS + 1, OTHER));
    }
}
