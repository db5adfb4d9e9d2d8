//! Method calls in a template, such as `.Req.Header.Get "Accept"`.
//!
//! The library knows fields only. Where something with a field at its end has arguments, this makes a call of a function
//! of it, and it puts what counts the steps of a page into loops and templates.

use gotmpl::parse::{ActionNode, BranchNode, CommandNode, Expr, ListNode, Node, PipeNode, Pos, SmolStr};
use std::sync::Arc;

/// Calls a method: its name, the receiver, and the arguments.
pub(crate) const METHOD: &str = "__method";
/// What an action prints.
pub(crate) const SHOW: &str = "__show";
/// Counts a step, and prints nothing.
pub(crate) const STEP: &str = "__step";

/// The body of a template or of a loop.
pub(crate) fn rewrite_body(list: &mut ListNode) {
    rewrite_list(list);
    let pos = list.pos;
    let command = CommandNode { pos, args: vec![Expr::Identifier(pos, SmolStr::new_static(STEP))] };
    list.nodes.insert(0, Node::Action(ActionNode { pos, pipe: pipe_of(pos, vec![command]) }));
}

fn rewrite_list(list: &mut ListNode) {
    list.nodes.iter_mut().for_each(rewrite_node);
}

fn rewrite_node(node: &mut Node) {
    match node {
        Node::List(list) => rewrite_list(list),
        Node::Action(action) => {
            rewrite_pipe(&mut action.pipe);
            if action.pipe.decl.is_empty() {
                let pos = action.pos;
                let show = vec![Expr::Identifier(pos, SmolStr::new_static(SHOW))];
                action.pipe.commands.push(CommandNode { pos, args: show });
            }
        }
        Node::If(branch) | Node::With(branch) => {
            rewrite_head(branch);
            rewrite_list(&mut branch.body);
        }
        Node::Range(branch) => {
            rewrite_head(branch);
            rewrite_body(&mut branch.body);
        }
        Node::Template(template) => template.pipe.iter_mut().for_each(rewrite_pipe),
        Node::Define(define) => rewrite_body(&mut define.body),
        Node::Text(_) | Node::Break(_) | Node::Continue(_) => {}
    }
}

/// All but the body.
fn rewrite_head(branch: &mut BranchNode) {
    rewrite_pipe(&mut branch.pipe);
    branch.else_body.iter_mut().for_each(rewrite_list);
}

fn rewrite_pipe(pipe: &mut PipeNode) {
    for (index, command) in pipe.commands.iter_mut().enumerate() {
        command.args.iter_mut().for_each(rewrite_expression);
        // What is piped in is an argument too.
        if index > 0 || command.args.len() > 1 {
            call_method(command);
        }
    }
}

fn rewrite_expression(expression: &mut Expr) {
    match expression {
        Expr::Pipe(_, pipe) => rewrite_pipe(pipe),
        Expr::Chain(_, inner, _) => rewrite_expression(inner),
        _ => {}
    }
}

fn call_method(command: &mut CommandNode) {
    let Some((receiver, method)) = command.args.first().and_then(split) else { return };
    let pos = command.pos;
    let mut args = vec![
        Expr::Identifier(pos, SmolStr::new_static(METHOD)),
        Expr::String(pos, Arc::from(method.as_str())),
        receiver,
    ];
    args.extend(command.args.drain(1..));
    command.args = args;
}

/// What stands before the last field, and that field.
fn split(expression: &Expr) -> Option<(Expr, SmolStr)> {
    let cut = |fields: &[SmolStr]| fields.split_last().map(|(last, rest)| (rest.to_vec(), last.clone()));
    match expression {
        Expr::Field(pos, fields) => {
            let (rest, last) = cut(fields)?;
            let receiver = if rest.is_empty() { Expr::Dot(*pos) } else { Expr::Field(*pos, rest) };
            Some((receiver, last))
        }
        Expr::Variable(pos, name, fields) => {
            let (rest, last) = cut(fields)?;
            Some((Expr::Variable(*pos, name.clone(), rest), last))
        }
        Expr::Chain(pos, inner, fields) => {
            let (rest, last) = cut(fields)?;
            let receiver =
                if rest.is_empty() { (**inner).clone() } else { Expr::Chain(*pos, inner.clone(), rest) };
            Some((receiver, last))
        }
        _ => None,
    }
}

fn pipe_of(pos: Pos, commands: Vec<CommandNode>) -> PipeNode {
    PipeNode { pos, decl: Vec::new(), commands, is_assign: false }
}
