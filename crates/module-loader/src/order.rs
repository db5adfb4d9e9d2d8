//! The order in which modules are initialised: each after those that it depends on.

use crate::error::LoadError;
use crate::library::Library;
use crate::version;
use std::cmp::Ordering;

/// Which libraries one depends on: indices.
pub type Dependencies = Vec<usize>;

/// The libraries, each after those that it depends on, and otherwise as they were configured; and what each depends on.
pub fn order(libraries: &[Library]) -> Result<(Vec<usize>, Vec<Dependencies>), LoadError> {
    let dependencies: Vec<Dependencies> =
        libraries.iter().map(|library| dependencies(library, libraries)).collect::<Result<_, _>>()?;
    let mut search = Search {
        dependencies: &dependencies,
        path: Vec::new(),
        done: vec![false; libraries.len()],
        order: Vec::new(),
    };
    for index in 0..libraries.len() {
        search.visit(index).map_err(|circle| LoadError::Cycle {
            circle: circle.into_iter().map(|index| libraries[index].name.clone()).collect(),
        })?;
    }
    let order = search.order;
    Ok((order, dependencies))
}

fn dependencies(library: &Library, all: &[Library]) -> Result<Dependencies, LoadError> {
    let find = |dependency: &crate::library::Dependency| {
        let index = all.iter().position(|other| other.name == dependency.name).ok_or_else(|| {
            LoadError::MissingDependency {
                file: library.file.clone(),
                module: library.name.clone(),
                dependency: dependency.name.clone(),
            }
        })?;
        match &dependency.version {
            Some(wanted) if version::compare(&all[index].version, wanted) == Ordering::Less => {
                Err(LoadError::OldDependency {
                    file: library.file.clone(),
                    module: library.name.clone(),
                    dependency: dependency.name.clone(),
                    wanted: wanted.clone(),
                    found: all[index].version.clone(),
                })
            }
            _ => Ok(index),
        }
    };
    library.dependencies.iter().map(find).collect()
}

/// Depth first.
struct Search<'a> {
    dependencies: &'a [Dependencies],
    /// From the first to the one that is looked at.
    path: Vec<usize>,
    done: Vec<bool>,
    order: Vec<usize>,
}

impl Search<'_> {
    /// An error is a circle, its first element at both ends.
    fn visit(&mut self, index: usize) -> Result<(), Vec<usize>> {
        if let Some(start) = self.path.iter().position(|other| *other == index) {
            let mut circle = self.path.split_off(start);
            circle.push(index);
            return Err(circle);
        }
        if self.done[index] {
            return Ok(());
        }
        self.path.push(index);
        let dependencies = self.dependencies;
        dependencies[index].iter().try_for_each(|dependency| self.visit(*dependency))?;
        self.path.pop();
        self.done[index] = true;
        self.order.push(index);
        Ok(())
    }
}

/// All that one depends on, directly or not.
pub fn reachable(index: usize, dependencies: &[Dependencies]) -> Vec<usize> {
    let mut found = Vec::new();
    let mut open = dependencies[index].clone();
    while let Some(next) = open.pop() {
        if !found.contains(&next) {
            found.push(next);
            open.extend(&dependencies[next]);
        }
    }
    found
}
