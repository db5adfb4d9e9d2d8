//! Random times, the same ones for the same seed.

use fastrand::Rng;

use super::Moment;
use crate::fleet::model::{Arrivals, Service};

pub struct Chance(Rng);

impl Chance {
    pub fn new(seed: u64) -> Self {
        Self(Rng::with_seed(seed))
    }

    /// From 0 to 1.
    pub fn part(&mut self) -> f64 {
        self.0.f64()
    }

    /// Until the next arrival, where one comes in each unit of time.
    pub fn pause(&mut self, arrivals: Arrivals) -> f64 {
        match arrivals {
            Arrivals::Poisson => self.exponential(),
            Arrivals::Even => 1.0,
        }
    }

    pub fn service(&mut self, service: Service) -> Moment {
        let mean = service.mean().as_secs_f64();
        let seconds = match service {
            Service::Fixed(_) => mean,
            Service::Exponential(_) => mean * self.exponential(),
            Service::LogNormal { deviation, .. } => mean * self.log_normal(deviation),
        };
        (seconds * 1e9) as Moment
    }

    /// Of mean 1.
    fn exponential(&mut self) -> f64 {
        -(1.0 - self.0.f64()).ln()
    }

    /// Of mean 1 and this standard deviation.
    fn log_normal(&mut self, deviation: f64) -> f64 {
        let variance = (1.0 + deviation * deviation).ln();
        (variance.sqrt() * self.normal() - variance / 2.0).exp()
    }

    /// By Box and Muller.
    fn normal(&mut self) -> f64 {
        let radius = (2.0 * self.exponential()).sqrt();
        radius * (std::f64::consts::TAU * self.0.f64()).cos()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const MEAN: Duration = Duration::from_millis(10);

    fn moments(service: Service) -> (f64, f64) {
        let mut chance = Chance::new(7);
        let number = 200_000;
        let times: Vec<f64> = (0..number).map(|_| chance.service(service) as f64 / 1e6).collect();
        let mean = times.iter().sum::<f64>() / f64::from(number);
        let variance = times.iter().map(|time| (time - mean).powi(2)).sum::<f64>() / f64::from(number);
        (mean, variance.sqrt())
    }

    #[test]
    fn times_have_the_mean_and_the_deviation_that_they_should() {
        let cases = [
            (Service::Fixed(MEAN), 0.0),
            (Service::Exponential(MEAN), 10.0),
            (Service::LogNormal { mean: MEAN, deviation: 0.5 }, 5.0),
        ];
        for (service, expected) in cases {
            let (mean, deviation) = moments(service);
            assert!((mean - 10.0).abs() < 0.1, "{service:?}: {mean}");
            assert!((deviation - expected).abs() < 0.15, "{service:?}: {deviation}");
        }
    }
}
