//! The file format of speedscope (its `src/lib/file-format-spec.ts`): two sampled profiles, wall and CPU time, over the
//! same frames.

use crate::{Measure, Profile};
use serde_json::{Value, json};

const SCHEMA: &str = "https://www.speedscope.app/file-format-schema.json";

pub fn file(profile: &Profile, title: &str) -> String {
    let frames: Vec<Value> = profile.functions.iter().map(frame).collect();
    json!({
        "$schema": SCHEMA,
        "name": title,
        "exporter": "regent",
        "activeProfileIndex": 0,
        "shared": { "frames": frames },
        "profiles": [
            sampled(profile, "wall time", Measure::Wall),
            sampled(profile, "CPU time", Measure::Cpu),
        ],
    })
    .to_string()
}

fn frame(function: &crate::Function) -> Value {
    let name = if function.name.is_empty() { &function.file } else { &function.name };
    match function.file.as_str() {
        "" => json!({ "name": name }),
        file => json!({ "name": name, "file": file }),
    }
}

fn sampled(profile: &Profile, name: &str, measure: Measure) -> Value {
    let weights: Vec<u64> =
        profile.stacks.iter().map(|stack| profile.microseconds_of(stack, measure)).collect();
    json!({
        "type": "sampled",
        "name": name,
        "unit": "microseconds",
        "startValue": 0,
        "endValue": weights.iter().sum::<u64>(),
        "samples": profile.stacks.iter().map(|stack| &stack.functions).collect::<Vec<_>>(),
        "weights": weights,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::example;

    #[test]
    fn samples_name_frames_that_are_there_and_weights_add_up() {
        let file: Value = serde_json::from_str(&file(&example(), "a site")).unwrap();
        let frames = file["shared"]["frames"].as_array().unwrap();
        assert_eq!(frames[2], json!({ "name": "sleep" }));
        assert_eq!(frames[0]["name"], "/srv/index.php");
        for profile in file["profiles"].as_array().unwrap() {
            let (samples, weights) =
                (profile["samples"].as_array().unwrap(), profile["weights"].as_array().unwrap());
            assert_eq!(samples.len(), weights.len());
            let all = samples.iter().flat_map(|sample| sample.as_array().unwrap());
            assert!(all.into_iter().all(|index| index.as_u64().unwrap() < frames.len() as u64));
            let sum: u64 = weights.iter().map(|weight| weight.as_u64().unwrap()).sum();
            assert_eq!(profile["endValue"], sum);
        }
        assert_eq!(file["profiles"][0]["endValue"], 410_000);
    }
}
