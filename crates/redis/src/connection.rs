//! A connection on which commands are given, whoever answers them.

use crate::cluster::ClusterConnection;
use redis::{ConnectionLike, RedisResult, Value};
use std::time::Duration;

/// To the server that takes what is written. In a cluster, to all that are needed: [`Self::about`] says which.
pub struct Connection(Kind);

enum Kind {
    Server(redis::Connection),
    Cluster(ClusterConnection),
}

impl Connection {
    pub(crate) fn to_server(connection: redis::Connection) -> Self {
        Self(Kind::Server(connection))
    }

    pub(crate) fn to_cluster(connection: ClusterConnection) -> Self {
        Self(Kind::Cluster(connection))
    }

    /// What follows is about this key, or about several of its slot. Blocks where a server of a cluster has to be
    /// connected to, no longer than the time limit.
    ///
    /// # Errors
    /// When that server cannot be reached, or nobody has the key.
    pub fn about(&mut self, key: &str) -> RedisResult<&mut Self> {
        if let Kind::Cluster(cluster) = &mut self.0 {
            cluster.about(key)?;
        }
        Ok(self)
    }

    /// For each answer from now on, instead of the client's time limit: for commands that wait themselves.
    ///
    /// # Errors
    /// When the time is 0.
    pub fn set_read_timeout(&mut self, timeout: Duration) -> RedisResult<()> {
        match &mut self.0 {
            Kind::Server(connection) => connection.set_read_timeout(Some(timeout)),
            Kind::Cluster(cluster) => cluster.set_read_timeout(timeout),
        }
    }

    fn inner(&self) -> &dyn ConnectionLike {
        match &self.0 {
            Kind::Server(connection) => connection,
            Kind::Cluster(cluster) => cluster,
        }
    }

    fn inner_mut(&mut self) -> &mut dyn ConnectionLike {
        match &mut self.0 {
            Kind::Server(connection) => connection,
            Kind::Cluster(cluster) => cluster,
        }
    }
}

impl ConnectionLike for Connection {
    fn req_packed_command(&mut self, command: &[u8]) -> RedisResult<Value> {
        self.inner_mut().req_packed_command(command)
    }

    fn req_packed_commands(
        &mut self,
        commands: &[u8],
        offset: usize,
        count: usize,
    ) -> RedisResult<Vec<Value>> {
        self.inner_mut().req_packed_commands(commands, offset, count)
    }

    fn get_db(&self) -> i64 {
        self.inner().get_db()
    }

    fn check_connection(&mut self) -> bool {
        self.inner_mut().check_connection()
    }

    fn is_open(&self) -> bool {
        self.inner().is_open()
    }
}
