//! What is simulated, as plain data: a fleet, its load, and what happens to it.

use std::fmt;
use std::time::Duration;

use clap::ValueEnum;

/// Nodes with a pool of threads each, behind balancers.
#[derive(Clone, Debug)]
pub struct Fleet {
    pub nodes: usize,
    /// Of PHP, for each node; requests wait for them in the order of arrival.
    pub threads: usize,
    /// The time that a request has a thread for.
    pub service: Service,
    pub balancing: Balancing,
    /// From the client's request to the node and back, without waiting and running.
    pub way: Duration,
    /// A node refuses what would wait longer than that, as `max_wait_time` has it. `None`: nothing is refused.
    pub longest_wait: Option<Duration>,
}

/// The time that a request has a thread for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Service {
    Fixed(Duration),
    /// Many short ones and some long: the mean, with a standard deviation as large.
    Exponential(Duration),
    /// As pages of an application are: a mean, and the standard deviation as a part of it.
    LogNormal {
        mean: Duration,
        deviation: f64,
    },
}

/// How balancers choose, and what they know.
#[derive(Clone, Copy, Debug)]
pub struct Balancing {
    pub policy: Policy,
    /// Each of them knows of its own requests alone; clients have one of them by chance.
    pub balancers: usize,
    pub check: Check,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Policy {
    Random,
    RoundRobin,
    /// The node with the fewest requests of this balancer
    LeastConn,
    /// Of two by chance the one with fewer
    P2c,
}

/// How a balancer finds out that a node is gone.
#[derive(Clone, Copy, Debug)]
pub struct Check {
    pub interval: Duration,
    /// So many in vain, until a node gets nothing any more.
    pub fall: u32,
    /// A connection that nobody refuses or takes.
    pub connect_timeout: Duration,
}

#[derive(Clone, Debug)]
pub struct Load {
    pub arrivals: Arrivals,
    /// Requests a second from these moments on, in their order; the first is 0.
    pub rates: Vec<(Duration, f64)>,
    pub duration: Duration,
    /// Before that nothing is counted: queues are as they will be.
    pub warm_up: Duration,
    pub seed: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrivals {
    /// Of many users who know nothing of each other.
    Poisson,
    /// Evenly spaced, as a load generator sends them.
    Even,
}

/// What happens to a node, at a moment.
#[derive(Clone, Copy, Debug)]
pub struct Incident {
    pub at: Duration,
    pub node: usize,
    pub what: Fault,
}

#[derive(Clone, Copy, Debug)]
pub enum Fault {
    /// Its process is gone: what it had is lost, its port refuses connections.
    Killed,
    /// Its machine is gone: nobody refuses, connections time out.
    Lost,
    /// It takes requests and goes on with none of them for so long.
    Frozen(Duration),
    /// The balancers know before, what it has is answered, and it is back after so long.
    Restarted(Duration),
}

/// A HorizontalPodAutoscaler, with the delays between a wait and a new pod.
#[derive(Clone, Copy, Debug)]
pub struct Autoscaling {
    pub most: usize,
    /// Mean wait for a thread, over all nodes that serve.
    pub target_wait: Duration,
    /// Part of the threads that may be busy, as the other metric.
    pub target_busy: f64,
    /// Over which the metrics are means.
    pub window: Duration,
    /// Between two looks of the controller.
    pub sync: Duration,
    pub up: Bounds,
    pub down: Bounds,
    /// From the decision to the first request: scheduling, image, start, readiness.
    pub start: Duration,
}

/// How fast it may change.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// The most cautious recommendation of so long counts.
    pub stabilization: Duration,
    /// Within a period: a part of the pods, or so many, whichever is more.
    pub part: f64,
    pub pods: usize,
    pub period: Duration,
}

impl Service {
    pub fn mean(self) -> Duration {
        match self {
            Self::Fixed(mean) | Self::Exponential(mean) | Self::LogNormal { mean, .. } => mean,
        }
    }
}

impl Fleet {
    /// Requests a second that keep all threads busy.
    pub fn capacity(&self) -> f64 {
        (self.nodes * self.threads) as f64 / self.service.mean().as_secs_f64()
    }
}

impl Load {
    /// At one rate from the beginning to the end.
    pub fn steady(rate: f64, duration: Duration, warm_up: Duration, seed: u64) -> Self {
        Self { arrivals: Arrivals::Poisson, rates: vec![(Duration::ZERO, rate)], duration, warm_up, seed }
    }
}

impl Check {
    /// Of HAProxy, as docs/load-balancers.md has it.
    pub const HAPROXY: Self =
        Self { interval: Duration::from_secs(1), fall: 2, connect_timeout: Duration::from_secs(2) };
}

impl Autoscaling {
    /// As packaging/kubernetes/autoscaling/hpa-queue-wait.yaml has it, with a pod that serves after half a minute.
    pub fn packaged(most: usize) -> Self {
        let minute = Duration::from_secs(60);
        Self {
            most,
            target_wait: Duration::from_millis(50),
            target_busy: 0.7,
            window: 2 * minute,
            sync: Duration::from_secs(15),
            up: Bounds { stabilization: Duration::from_secs(30), part: 0.5, pods: 2, period: minute },
            down: Bounds { stabilization: 5 * minute, part: 0.25, pods: 0, period: minute },
            start: Duration::from_secs(30),
        }
    }
}

impl fmt::Display for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = self.mean().as_secs_f64() * 1e3;
        match self {
            Self::Fixed(_) => write!(f, "{ms} ms"),
            Self::Exponential(_) => write!(f, "{ms} ms on the average, with exponential times"),
            Self::LogNormal { deviation, .. } => {
                write!(
                    f,
                    "{ms} ms on the average (log-normal, with a standard deviation of {deviation} of that)"
                )
            }
        }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Random => "random",
            Self::RoundRobin => "round robin",
            Self::LeastConn => "leastconn",
            Self::P2c => "two by chance",
        })
    }
}
