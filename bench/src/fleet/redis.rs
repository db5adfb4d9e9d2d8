//! As much of Redis' protocol as measuring needs: commands as arrays, and answers that are read and left.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

/// No answer of a Redis on this machine takes so long.
const PATIENCE: Duration = Duration::from_secs(20);

pub struct Connection {
    stream: BufReader<TcpStream>,
}

impl Connection {
    pub fn open(port: u16) -> Result<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port)).context("Redis does not answer")?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Self { stream: BufReader::new(stream) })
    }

    /// One command and its answer. An error of Redis is one.
    pub fn ask(&mut self, command: &[&str]) -> Result<Reply> {
        self.stream.get_mut().write_all(&encoded(command))?;
        self.answer()
    }

    fn answer(&mut self) -> Result<Reply> {
        let mut line = String::new();
        ensure!(self.stream.read_line(&mut line)? > 0, "Redis has closed the connection");
        let line = line.trim_end();
        let (kind, rest) = line.split_at_checked(1).context("Redis has answered nothing")?;
        match kind {
            "+" | ":" => Ok(Reply::Text(rest.to_owned())),
            "-" => bail!("Redis says: {rest}"),
            "$" | "*" if rest == "-1" => Ok(Reply::Nothing),
            "$" => self.bulk(rest.parse()?),
            "*" => {
                let length: usize = rest.parse()?;
                Ok(Reply::List((0..length).map(|_| self.answer()).collect::<Result<_>>()?))
            }
            _ => bail!("Redis has answered {line:?}"),
        }
    }

    fn bulk(&mut self, length: usize) -> Result<Reply> {
        let mut bytes = vec![0; length + 2];
        std::io::Read::read_exact(&mut self.stream, &mut bytes)?;
        bytes.truncate(length);
        Ok(Reply::Text(String::from_utf8_lossy(&bytes).into_owned()))
    }
}

#[derive(Debug, PartialEq, Eq)]
pub enum Reply {
    Nothing,
    Text(String),
    List(Vec<Reply>),
}

fn encoded(command: &[&str]) -> Vec<u8> {
    let words = command.iter().map(|word| format!("${}\r\n{word}\r\n", word.len()));
    let mut text = format!("*{}\r\n", command.len());
    text.extend(words);
    text.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::net::TcpListener;

    #[test]
    fn commands_are_arrays_and_answers_are_read_to_their_end() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("it is bound").port();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("it connects");
            let mut heard = [0; 33];
            stream.read_exact(&mut heard).expect("a command");
            stream.write_all(b"*2\r\n$3\r\na\r\n\r\n*-1\r\n-ERR no\r\n").expect("it listens");
            heard.to_vec()
        });
        let mut connection = Connection::open(port).expect("it listens");
        let reply = connection.ask(&["SET", "key", "value"]).expect("an answer");
        assert_eq!(reply, Reply::List(vec![Reply::Text("a\r\n".to_owned()), Reply::Nothing]));
        let error = connection.answer().expect_err("it says no").to_string();
        assert_eq!(error, "Redis says: ERR no");
        let heard = server.join().expect("it heard");
        assert_eq!(heard, b"*3\r\n$3\r\nSET\r\n$3\r\nkey\r\n$5\r\nvalue\r\n");
    }
}
