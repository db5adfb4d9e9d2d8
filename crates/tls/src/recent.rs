//! What was used last, by name, within a bound.

use std::collections::HashMap;

/// Keeps at least half as many as it may hold: when `young` has so many, it becomes `old`, and what was `old` is forgotten.
#[derive(Debug)]
pub(crate) struct Recent<T> {
    most: usize,
    young: HashMap<String, T>,
    old: HashMap<String, T>,
}

impl<T> Recent<T> {
    pub fn new(most: usize) -> Self {
        Self { most, young: HashMap::new(), old: HashMap::new() }
    }

    /// Counts as a use.
    pub fn get(&mut self, name: &str) -> Option<&T> {
        if let Some(found) = self.old.remove(name) {
            self.insert(name, found);
        }
        self.young.get(name)
    }

    pub fn insert(&mut self, name: &str, value: T) {
        if self.young.len() >= self.most / 2 && !self.young.contains_key(name) {
            self.old = std::mem::take(&mut self.young);
        }
        self.old.remove(name);
        self.young.insert(name.to_owned(), value);
    }

    /// In no order.
    pub fn iter(&self) -> impl Iterator<Item = (&String, &T)> {
        self.young.iter().chain(&self.old)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_stays_and_the_rest_has_a_bound() {
        let mut recent = Recent::new(8);
        recent.insert("used", 0);
        for number in 1..100 {
            recent.insert(&number.to_string(), number);
            assert_eq!(recent.get("used"), Some(&0));
            assert!(recent.iter().count() <= 8);
        }
        assert_eq!(recent.get("1"), None);
        recent.insert("99", 0);
        assert_eq!(recent.iter().filter(|(name, _)| *name == "99").count(), 1);
    }
}
