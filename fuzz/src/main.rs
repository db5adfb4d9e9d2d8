//! Runs a target with the inputs of files, for a debugger or a look at the panic.

use anyhow::{Context, Result, bail};
use regent_fuzz::{Target, targets};

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let Some(name) = arguments.next() else {
        let names: Vec<_> = targets::ALL.iter().map(|target| target.name).collect();
        bail!("write `regent-fuzz TARGET FILE…`; the targets are {}", names.join(", "));
    };
    let target = Target::named(&name).with_context(|| format!("no target is called {name}"))?;
    for file in arguments {
        (target.run)(&std::fs::read(&file).with_context(|| format!("reading {file}"))?);
        println!("{file}: no finding");
    }
    Ok(())
}
