//! A line on its way to being understood: a name, arguments, perhaps a block.

use crate::problems::error;
use regent_caddyfile::{Error, Line, Token};

/// A directive or an option, without the matcher that it may have had.
#[derive(Clone, Copy)]
pub(crate) struct Call<'a> {
    pub name: &'a Token,
    pub args: &'a [Token],
    pub block: Option<&'a [Line]>,
}

impl<'a> Call<'a> {
    pub fn new(line: &'a Line) -> Self {
        Self { name: &line.name, args: &line.args, block: line.block.as_deref() }
    }

    pub fn name(&self) -> &'a str {
        &self.name.text
    }

    /// The lines of the block; none without one.
    pub fn options(&self) -> impl Iterator<Item = Call<'a>> + use<'a> {
        self.block.unwrap_or_default().iter().map(Call::new)
    }

    /// The arguments, which have to be `N`, with no block. `syntax` is shown otherwise.
    pub fn exactly<const N: usize>(&self, syntax: &str) -> Result<&'a [Token; N], Error> {
        self.without_block(syntax)?;
        self.args.try_into().map_err(|_| self.wrong_arguments(N, syntax))
    }

    /// The one argument, with no block.
    pub fn one(&self, syntax: &str) -> Result<&'a Token, Error> {
        self.exactly::<1>(syntax).map(|[token]| token)
    }

    /// The arguments, at least one, with no block.
    pub fn some(&self, syntax: &str) -> Result<&'a [Token], Error> {
        self.without_block(syntax)?;
        if self.args.is_empty() { Err(self.wrong_arguments(1, syntax)) } else { Ok(self.args) }
    }

    /// No arguments; a block may follow.
    pub fn no_arguments(&self, syntax: &str) -> Result<(), Error> {
        if self.args.is_empty() { Ok(()) } else { Err(self.wrong_arguments(0, syntax)) }
    }

    pub fn without_block(&self, syntax: &str) -> Result<(), Error> {
        match self.block {
            Some(_) => Err(error(self.name, format!("`{}` takes no block; write: {syntax}", self.name()))),
            None => Ok(()),
        }
    }

    /// Blames the first argument beyond `expected`, or the name if there are too few.
    pub fn wrong_arguments(&self, expected: usize, syntax: &str) -> Error {
        match self.args.get(expected) {
            Some(surplus) => {
                error(surplus, format!("too many arguments for `{}`; write: {syntax}", self.name()))
            }
            None => error(self.name, format!("too few arguments for `{}`; write: {syntax}", self.name())),
        }
    }
}
