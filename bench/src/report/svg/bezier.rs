//! The trend through measured points: gnuplot's `smooth bezier`.

/// Where the curve is evaluated: enough for straight pieces to look round at the width of a plot.
const SAMPLES: usize = 160;

/// Points of the Bézier curve of degree n − 1 whose control points are all n points given, in their order: it begins in
/// the first, ends in the last, and lies inside their convex hull. Empty for fewer than two points.
pub fn curve(control: &[(f64, f64)]) -> Vec<(f64, f64)> {
    if control.len() < 2 {
        return Vec::new();
    }
    let binomials = log_binomials(control.len() - 1);
    (0..=SAMPLES).map(|index| at(control, &binomials, index as f64 / SAMPLES as f64)).collect()
}

/// The sum of the control points weighted with Bernstein's polynomials at `t` from 0 to 1. The weights are computed as
/// logarithms, because the binomial coefficients of some thousand points exceed an f64.
fn at(control: &[(f64, f64)], log_binomials: &[f64], t: f64) -> (f64, f64) {
    let degree = control.len() - 1;
    if t <= 0.0 {
        return control[0];
    }
    if t >= 1.0 {
        return control[degree];
    }
    let (log_t, log_rest) = (t.ln(), (-t).ln_1p());
    let (mut x, mut y, mut total) = (0.0, 0.0, 0.0);
    for (index, (point, log_binomial)) in control.iter().zip(log_binomials).enumerate() {
        let weight = (log_binomial + index as f64 * log_t + (degree - index) as f64 * log_rest).exp();
        x += weight * point.0;
        y += weight * point.1;
        total += weight;
    }
    // The weights sum to 1 but for rounding.
    (x / total, y / total)
}

/// ln of "degree over k" for k from 0 to `degree`.
fn log_binomials(degree: usize) -> Vec<f64> {
    let mut logarithms = vec![0.0];
    let mut sum = 0.0;
    for k in 1..=degree {
        sum += ((degree - k + 1) as f64).ln() - (k as f64).ln();
        logarithms.push(sum);
    }
    logarithms
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition, which takes the square of the number of points.
    fn de_casteljau(control: &[(f64, f64)], t: f64) -> (f64, f64) {
        let mut points = control.to_vec();
        let mix = |a: f64, b: f64| a + (b - a) * t;
        while points.len() > 1 {
            points = points.windows(2).map(|p| (mix(p[0].0, p[1].0), mix(p[0].1, p[1].1))).collect();
        }
        points[0]
    }

    fn zigzag(count: usize) -> Vec<(f64, f64)> {
        (0..count).map(|index| (index as f64, ((index * 37) % 11) as f64)).collect()
    }

    #[test]
    fn it_is_de_casteljaus_curve() {
        for count in [2, 3, 4, 101, 400] {
            let control = zigzag(count);
            for (index, (x, y)) in curve(&control).into_iter().enumerate() {
                let (wanted_x, wanted_y) = de_casteljau(&control, index as f64 / SAMPLES as f64);
                assert!(
                    (x - wanted_x).abs() < 1e-6 * count as f64 && (y - wanted_y).abs() < 1e-8,
                    "{count}: {index}"
                );
            }
        }
    }

    #[test]
    fn thousands_of_points_do_not_overflow() {
        let curve = curve(&zigzag(10_000));
        assert!(curve.iter().all(|(x, y)| (0.0..10_000.0).contains(x) && (0.0..=10.0).contains(y)));
        assert_eq!((curve[0], curve[SAMPLES].0), ((0.0, 0.0), 9_999.0));
    }

    #[test]
    fn one_point_has_no_trend() {
        assert!(curve(&[]).is_empty() && curve(&[(1.0, 1.0)]).is_empty());
    }
}
