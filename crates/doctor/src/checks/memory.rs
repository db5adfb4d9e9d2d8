//! Whether the threads of PHP fit into the memory.

use super::Finding;
use crate::{Machine, PhpFacts};
use regent_config::{Config, MaxThreads};

/// What a thread takes that has served requests of a small application; a guess on the low side.
const LEAST_PER_THREAD: u64 = 4 << 20;
/// For the server, the engine without its threads, and all else on the machine.
const REST: u64 = 128 << 20;
const MIB: u64 = 1 << 20;

pub(super) fn check(config: &Config, php: &PhpFacts, machine: &Machine, findings: &mut Vec<Finding>) {
    let threads = match &machine.threads {
        Ok(threads) => threads,
        Err(error) => {
            return findings.push(Finding::problem(
                "threads",
                error.to_string(),
                "The server refuses to start.",
                "Change num_threads, max_threads or the workers' num in the `regent` block.",
            ));
        }
    };
    let limit = php.number("memory_limit");
    if limit.is_some_and(|limit| limit < 0) {
        findings.push(Finding::advice(
            "memory_limit",
            "memory_limit is -1",
            "One script that goes astray takes the memory of all, and the kernel ends the engine.",
            "Set `memory_limit = 256M` in php.ini, or what your largest page needs.",
        ));
    }
    let Some(memory) = machine.memory_limit else { return };
    let fixed = u64::from(opcache_memory(php)) + REST;
    let least = threads.least as u64 * LEAST_PER_THREAD + fixed;
    if least > memory {
        return findings.push(Finding::problem(
            "memory",
            format!("{} threads take {} MiB or more, and there are {} MiB", threads.least, least / MIB, memory / MIB),
            "The kernel ends the engine when the memory is used up.",
            "Lower num_threads and the workers' num in the `regent` block, or opcache.memory_consumption, or give the \
             server more memory.",
        ));
    }
    // Scaling on its own looks at the memory; numbers of the configuration are taken as they are.
    let chosen = !matches!(
        (config.global.php.max_threads, config.global.php.num_threads),
        (Some(MaxThreads::Auto), _) | (None, None)
    );
    let most = threads.most as u64;
    let Some(limit) = limit.and_then(|limit| u64::try_from(limit).ok()) else { return };
    let worst = most.saturating_mul(limit).saturating_add(fixed);
    if chosen && worst > memory {
        findings.push(Finding::advice(
            "memory",
            format!(
                "{most} threads with a memory_limit of {} MiB each may take {} MiB, and there are {} MiB",
                limit / MIB,
                worst / MIB,
                memory / MIB
            ),
            "Large requests that come together can use up the memory, and the kernel ends the engine then.",
            "Lower memory_limit in php.ini, or the number of threads; without num_threads and max_threads, Regent \
             measures what a thread takes, and stays within the memory.",
        ));
    }
}

fn opcache_memory(php: &PhpFacts) -> u32 {
    let mebibytes = php.number("opcache.memory_consumption").unwrap_or(0);
    u32::try_from(mebibytes.saturating_mul(1 << 20)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{GIB, config, machine, php, php_with, words};
    use super::*;
    use regent_engines::ThreadCounts;

    fn of(options: &str, php: &PhpFacts, memory: u64, least: usize, most: usize) -> String {
        let config =
            config(&format!("{{\n\tregent {{\n{options}\n\t}}\n}}\nhttp://:8080 {{\n\tphp_server\n}}\n"));
        let machine =
            Machine { memory_limit: Some(memory), threads: Ok(ThreadCounts { least, most }), ..machine() };
        words(|found| check(&config, php, &machine, found))
    }

    #[test]
    fn threads_that_cannot_fit_are_a_problem() {
        let found = of("num_threads 100", &php(), GIB / 2, 100, 100);
        assert!(
            found.starts_with("Problem: 100 threads take 720 MiB or more, and there are 512 MiB"),
            "{found}"
        );
    }

    #[test]
    fn the_worst_case_counts_where_the_number_is_the_operators() {
        let found = of("num_threads 100", &php(), 8 * GIB, 100, 100);
        assert!(
            found.starts_with("Advice: 100 threads with a memory_limit of 128 MiB each may take 13120 MiB"),
            "{found}"
        );
        assert_eq!(of("", &php(), 8 * GIB, 8, 1024), "");
        assert_eq!(of("num_threads 8", &php(), 8 * GIB, 8, 8), "");
    }

    #[test]
    fn scripts_without_a_limit_are_told_of() {
        let found = of("num_threads 8", &php_with("memory_limit", "-1"), 8 * GIB, 8, 8);
        assert!(found.starts_with("Advice: memory_limit is -1") && !found.contains('\n'), "{found}");
    }
}
