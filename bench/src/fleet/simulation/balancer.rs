//! Who sends what where.

use fastrand::Rng;

use crate::fleet::model::{Balancing, Policy};

/// All of them. None knows of the others' requests.
pub struct Balancers {
    policy: Policy,
    each: Vec<Balancer>,
    random: Rng,
}

#[derive(Clone)]
struct Balancer {
    /// The nodes that it sends to.
    listed: Vec<usize>,
    /// Its requests at each node.
    sent: Vec<u32>,
    /// Where it goes on.
    turn: usize,
}

impl Balancers {
    pub fn new(balancing: Balancing, nodes: usize, seed: u64) -> Self {
        let mut random = Rng::with_seed(seed.wrapping_add(1));
        let balancer = |turn| Balancer { listed: (0..nodes).collect(), sent: vec![0; nodes], turn };
        let each = (0..balancing.balancers).map(|_| balancer(random.usize(..nodes.max(1)))).collect();
        Self { policy: balancing.policy, each, random }
    }

    pub fn number(&self) -> usize {
        self.each.len()
    }

    /// Whom a client has.
    pub fn one(&mut self) -> usize {
        self.random.usize(..self.each.len())
    }

    /// A node, but not the one that has just refused. `None`: there is none.
    pub fn choose(&mut self, balancer: usize, refused: Option<usize>) -> Option<usize> {
        let chosen = self.each[balancer].choose(self.policy, &mut self.random)?;
        if Some(chosen) != refused {
            return Some(chosen);
        }
        let others: Vec<usize> =
            self.each[balancer].listed.iter().copied().filter(|node| Some(*node) != refused).collect();
        self.random.choice(others)
    }

    pub fn begin(&mut self, balancer: usize, node: usize) {
        self.each[balancer].sent[node] += 1;
    }

    pub fn end(&mut self, balancer: usize, node: usize) {
        let sent = &mut self.each[balancer].sent[node];
        *sent = sent.saturating_sub(1);
    }

    /// Its requests are lost.
    pub fn forget(&mut self, node: usize) {
        self.each.iter_mut().for_each(|balancer| balancer.sent[node] = 0);
    }

    pub fn unlist(&mut self, node: usize, balancer: usize) {
        self.each[balancer].listed.retain(|listed| *listed != node);
    }

    /// At all of them.
    pub fn list(&mut self, node: usize) {
        for balancer in &mut self.each {
            if !balancer.listed.contains(&node) {
                balancer.listed.push(node);
            }
        }
    }

    /// A node that is not listed yet.
    pub fn add(&mut self) {
        self.each.iter_mut().for_each(|balancer| balancer.sent.push(0));
    }
}

impl Balancer {
    fn choose(&mut self, policy: Policy, random: &mut Rng) -> Option<usize> {
        let number = self.listed.len();
        if number == 0 {
            return None;
        }
        self.turn = (self.turn + 1) % number;
        let place = match policy {
            Policy::RoundRobin => self.turn,
            Policy::Random => random.usize(..number),
            Policy::P2c if number == 1 => 0,
            Policy::P2c => {
                let one = random.usize(..number);
                let other = (one + 1 + random.usize(..number - 1)) % number;
                if self.at(other) < self.at(one) { other } else { one }
            }
            // Of equals whose turn it is.
            Policy::LeastConn => {
                let turn = self.turn;
                let in_turn = (0..number).map(|offset| (turn + offset) % number);
                in_turn.min_by_key(|place| self.at(*place))?
            }
        };
        Some(self.listed[place])
    }

    fn at(&self, place: usize) -> u32 {
        self.sent[self.listed[place]]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::model::Check;

    fn balancers(policy: Policy) -> Balancers {
        Balancers::new(Balancing { policy, balancers: 1, check: Check::HAPROXY }, 3, 1)
    }

    #[test]
    fn each_policy_chooses_as_it_says() {
        let mut all = balancers(Policy::RoundRobin);
        let mut three: Vec<_> = (0..3).filter_map(|_| all.choose(0, None)).collect();
        three.sort_unstable();
        assert_eq!(three, [0, 1, 2]);
        for policy in [Policy::LeastConn, Policy::P2c] {
            let mut all = balancers(policy);
            (0..5).for_each(|_| all.begin(0, 0));
            all.begin(0, 1);
            let chosen: Vec<_> = (0..50).filter_map(|_| all.choose(0, None)).collect();
            assert!(!chosen.contains(&0), "{policy}: the fullest of three is never the better one");
            assert_eq!(chosen.contains(&1), policy == Policy::P2c, "{policy}");
        }
    }

    #[test]
    fn a_node_that_has_refused_or_is_not_listed_is_not_chosen() {
        let mut all = balancers(Policy::Random);
        all.unlist(0, 0);
        for _ in 0..50 {
            assert_eq!(all.choose(0, Some(1)), Some(2));
        }
        all.unlist(2, 0);
        assert_eq!(all.choose(0, Some(1)), None);
        all.list(0);
        assert_eq!(all.choose(0, Some(1)), Some(0));
    }
}
