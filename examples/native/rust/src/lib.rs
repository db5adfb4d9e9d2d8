//! A module in Rust: a greeting, JSON in and out, and an answer that is made while it is sent.

use regent_module::{Answer, Error, Request, Result, module};
use serde::{Deserialize, Serialize};
use std::io::{Read, Write};

module! {
    name: "hello-rust",
    version: env!("CARGO_PKG_VERSION"),
    init: |app| {
        let greeting = app.config("greeting")?.unwrap_or_else(|| "Hello".to_owned());
        app.get("/hello/{name}", move |request| {
            let name: String = request.parameter("name")?;
            Ok(format!("{greeting} {name}\n"))
        });
        app.post("/mean", |request| Answer::json(&mean(request.json()?)?));
        app.get("/count/{to}", count);
        app.post("/upper", |_| Ok(upper()));

        let instance = app.instance();
        app.get("/stats", move |_| Answer::json(&instance.statistics()));
        Ok(())
    }
}

#[derive(Deserialize)]
struct Numbers {
    numbers: Vec<f64>,
}

#[derive(Serialize)]
struct Mean {
    count: usize,
    mean: f64,
}

fn mean(Numbers { numbers }: Numbers) -> Result<Mean> {
    if numbers.is_empty() {
        return Err(Error::bad_request("`numbers` must not be empty"));
    }
    let count = numbers.len();
    Ok(Mean { count, mean: numbers.iter().sum::<f64>() / count as f64 })
}

/// Sends each line as soon as it is there.
fn count(request: &mut Request) -> Result<Answer> {
    let to: u32 = request.parameter("to")?;
    let step = request.query("step")?.unwrap_or(1);
    if step == 0 {
        return Err(Error::bad_request("`step` must not be 0"));
    }
    let lines = Answer::stream("text/plain", move |_, stream| {
        for number in (0..=to).step_by(step) {
            writeln!(stream, "{number}")?;
            stream.flush()?;
        }
        stream.trailer("X-Counted-To", &to.to_string())
    });
    Ok(lines.header("Trailer", "X-Counted-To"))
}

/// Answers while the body comes in.
fn upper() -> Answer {
    Answer::stream("text/plain", |request, stream| {
        let mut buffer = [0; 4096];
        loop {
            match request.read(&mut buffer)? {
                0 => return Ok(()),
                size => stream.write_all(&buffer[..size].to_ascii_uppercase())?,
            }
        }
    })
}
