//! Routes that have a name, for `invoke`.

use crate::context::Context;
use crate::model::Route;
use crate::problems::{error, unknown};
use crate::routes::{self, Sorting};
use regent_caddyfile::{Error, Line, NamedRoute, Token};

/// All of the file, in its order.
#[derive(Default)]
pub(crate) struct NamedRoutes(Vec<(Token, State)>);

enum State {
    /// Nobody has invoked it yet.
    Written(Vec<Line>),
    /// It is being parsed: it must not invoke itself.
    Open,
    Parsed(Vec<Route>),
}

impl NamedRoutes {
    pub fn new(routes: &[NamedRoute]) -> Self {
        Self(routes.iter().map(|route| (route.name.clone(), State::Written(route.lines.clone()))).collect())
    }

    /// Those that nobody has invoked.
    pub fn unused(&self) -> impl Iterator<Item = &Token> {
        self.0.iter().filter(|(_, state)| matches!(state, State::Written(_))).map(|(name, _)| name)
    }
}

/// The routes of this name. They are parsed once, so that those who invoke them share upstreams and workers.
pub(crate) fn of_name(cx: &mut Context<'_>, name: &Token) -> Result<Vec<Route>, Error> {
    let Some(index) = cx.named_routes.0.iter().position(|(own, _)| own.text == name.text) else {
        let names: Vec<_> = cx.named_routes.0.iter().map(|(own, _)| own.text.as_str()).collect();
        return Err(unknown(name, "named route", &names));
    };
    let lines = match std::mem::replace(&mut cx.named_routes.0[index].1, State::Open) {
        State::Written(lines) => lines,
        State::Open => return Err(error(name, format!("the named route `{}` invokes itself", name.text))),
        State::Parsed(routes) => {
            cx.named_routes.0[index].1 = State::Parsed(routes.clone());
            return Ok(routes);
        }
    };
    let within = cx.response_block.take();
    let routes = routes::parse(cx, None, &lines, Sorting::ByDirective);
    cx.response_block = within;
    cx.named_routes.0[index].1 = State::Parsed(routes.clone());
    Ok(routes)
}
