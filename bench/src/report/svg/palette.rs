//! The same server looks the same in all figures: its colour, its marker and its dashes.
//!
//! The colours are those of Okabe and Ito where they stand out enough from both backgrounds, and neighbours of theirs
//! where not; each has a lighter twin for the dark page. Markers and dashes tell apart what colour alone does not.

use std::collections::{BTreeMap, BTreeSet};

use crate::report::page::Style;

/// How a series is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// Index of the colour: the class `hN` of the style sheet.
    hue: usize,
    variant: usize,
}

struct Family {
    /// Empty for those that unknown identities share.
    identity: &'static str,
    light: &'static str,
    dark: &'static str,
    /// A closed path around the point, relative to it.
    marker: &'static str,
    /// `stroke-dasharray`
    dash: &'static str,
}

const fn family(
    identity: &'static str,
    light: &'static str,
    dark: &'static str,
    marker: &'static str,
    dash: &'static str,
) -> Family {
    Family { identity, light, dark, marker, dash }
}

const CIRCLE: &str = "m-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0-9 0z";
const SQUARE: &str = "m-4-4h8v8h-8z";
const UP: &str = "m0-5l5 9h-10z";
const DOWN: &str = "m0 5l5-9h-10z";
const LEFT: &str = "m-5 0l9-5v10z";
const RIGHT: &str = "m5 0l-9-5v10z";
const DIAMOND: &str = "m0-6l5 6l-5 6l-5-6z";
const PLUS: &str = "m-1.5-5h3v3.5h3.5v3h-3.5v3.5h-3v-3.5h-3.5v-3h3.5z";
const PENTAGON: &str = "m0-5l5 3.6l-1.9 5.9h-6.2l-1.9-5.9z";
const HOURGLASS: &str = "m-4.5-5h9l-9 10h9z";
const BOW_TIE: &str = "m-5-4.5v9l10-9v9z";
const STAR: &str = "m0-6l1.7 4.3l4.3 1.7l-4.3 1.7l-1.7 4.3l-1.7-4.3l-4.3-1.7l4.3-1.7z";

const SOLID: &str = "";
const DASH_DOT: &str = "10 3 2 3";
const DASH_DOT_DOT: &str = "10 3 2 3 2 3";

const FAMILIES: [Family; 16] = [
    family("classic", "#0072b2", "#58b4f0", CIRCLE, SOLID),
    family("worker", "#d55e00", "#ff9248", SQUARE, SOLID),
    family("native", "#7b3fb0", "#c19bf5", DIAMOND, SOLID),
    family("native-inline", "#3f51c9", "#9dabff", STAR, DASH_DOT),
    family("respond", "#007f8c", "#4fd3e0", BOW_TIE, DASH_DOT_DOT),
    family("fpm", "#00865f", "#34cf9d", UP, SOLID),
    family("fpm-kept", "#b07d00", "#f0c040", DOWN, DASH_DOT),
    family("apache", "#c0508c", "#f590c4", PENTAGON, SOLID),
    family("frankenphp", "#2b2f36", "#e6edf3", LEFT, SOLID),
    family("frankenphp-worker", "#767c85", "#9aa4af", RIGHT, DASH_DOT),
    family("roadrunner", "#8c4a1c", "#d9a06b", PLUS, SOLID),
    family("swoole", "#2f93cc", "#a3e1ff", HOURGLASS, DASH_DOT_DOT),
    family("", "#882255", "#e57fae", CIRCLE, DASH_DOT_DOT),
    family("", "#6e6e14", "#cfcf62", SQUARE, DASH_DOT),
    family("", "#1b7f7f", "#66d4d4", DIAMOND, DASH_DOT_DOT),
    family("", "#332288", "#a99cff", UP, DASH_DOT),
];

/// Of the second, third, … series of one colour; the first has its family's own. `:default` begins with the first.
const VARIANT_DASHES: [&str; 5] = ["6 4", "2 3", "14 4", "1 6", "14 3 6 3"];

/// The look of each of a figure's series, by their identities. What stands after a colon is a tuning of the same server:
/// the same colour, dashed. Identities that are not known have a colour by their hash. No two looks of a figure are the
/// same as long as there are dashes left: six series of each of 16 colours.
pub fn looks(identities: &[&str]) -> Vec<Look> {
    let hues = hues(identities);
    let mut taken = BTreeSet::new();
    // Plain identities first, so that a tuning that stands before them does not take their look.
    let mut order: Vec<usize> = (0..identities.len()).collect();
    order.sort_by_key(|&index| first_variant(identities[index]));
    let mut looks = vec![Look { hue: 0, variant: 0 }; identities.len()];
    for index in order {
        let hue = hues[server(identities[index])];
        let wanted = first_variant(identities[index]);
        let free = (wanted..=VARIANT_DASHES.len()).chain(0..wanted).find(|v| !taken.contains(&(hue, *v)));
        let variant = free.unwrap_or(wanted);
        taken.insert((hue, variant));
        looks[index] = Look { hue, variant };
    }
    looks
}

impl Look {
    /// The class that sets `color`.
    pub fn class(self) -> String {
        format!("h{}", self.hue)
    }

    /// The colour on a white page.
    pub fn color(self) -> &'static str {
        FAMILIES[self.hue].light
    }

    /// `stroke-dasharray`; empty for a solid line.
    pub fn dash(self, style: Style) -> &'static str {
        match self.variant {
            // Through the noise of a long series a colour is seen, its dashes are not.
            0 if style == Style::Thin => SOLID,
            0 => FAMILIES[self.hue].dash,
            variant => VARIANT_DASHES[(variant - 1) % VARIANT_DASHES.len()],
        }
    }

    /// A closed path around the current point. Tunings have a hollow one.
    pub fn marker(self) -> &'static str {
        FAMILIES[self.hue].marker
    }

    /// The class of the marker.
    pub fn filling(self) -> &'static str {
        if self.variant == 0 { "full" } else { "hollow" }
    }
}

/// The classes of all colours: `light` or `dark` page.
pub fn style(scheme: Scheme) -> String {
    let color = |family: &Family| match scheme {
        Scheme::Light => family.light,
        Scheme::Dark => family.dark,
    };
    FAMILIES
        .iter()
        .enumerate()
        .map(|(hue, family)| format!(".plot .h{hue}{{color:{}}}", color(family)))
        .collect()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    Light,
    Dark,
}

/// The server of an identity, without its tuning.
fn server(identity: &str) -> &str {
    identity.split(':').next().unwrap_or(identity)
}

fn first_variant(identity: &str) -> usize {
    match identity.split_once(':') {
        None => 0,
        Some((_, "default")) => 1,
        Some(_) => 2,
    }
}

/// The colour of each server: known ones have their own; the others, in the order of their names, the one that their
/// hash points to or the next of those that the fewest have.
fn hues<'a>(identities: &[&'a str]) -> BTreeMap<&'a str, usize> {
    let servers: BTreeSet<&str> = identities.iter().map(|identity| server(identity)).collect();
    let known = |server: &str| FAMILIES.iter().position(|f| !f.identity.is_empty() && f.identity == server);
    let mut hues: BTreeMap<&str, usize> = servers.iter().filter_map(|s| Some((*s, known(s)?))).collect();
    let mut uses = [0_usize; FAMILIES.len()];
    hues.values().for_each(|hue| uses[*hue] += 1);
    for server in servers.into_iter().filter(|server| known(server).is_none()) {
        let hue = candidates(hash(server)).min_by_key(|hue| uses[*hue]);
        let hue = hue.expect("invariant: there are colours");
        uses[hue] += 1;
        hues.insert(server, hue);
    }
    hues
}

/// First the colours that no server owns, then the others.
fn candidates(hash: usize) -> impl Iterator<Item = usize> {
    let owned = FAMILIES.iter().filter(|family| !family.identity.is_empty()).count();
    let free = FAMILIES.len() - owned;
    (0..free)
        .map(move |step| owned + (hash + step) % free)
        .chain((0..owned).map(move |step| (hash + step) % owned))
}

/// FNV-1a in 32 bits: the same in all versions of Rust, unlike the standard library's.
fn hash(text: &str) -> usize {
    text.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
        as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_server_looks_the_same_in_any_company() {
        let alone = looks(&["worker"])[0];
        assert_eq!(looks(&["x", "worker:default", "worker", "classic"])[2], alone);
        assert_eq!((alone.color(), alone.dash(Style::Line), alone.filling()), ("#d55e00", "", "full"));
    }

    #[test]
    fn a_tuning_is_dashed_in_its_servers_colour() {
        let [tuned, plain] = looks(&["fpm:default", "fpm"])[..] else { panic!("two looks") };
        assert_eq!(tuned.class(), plain.class());
        assert_eq!(
            (plain.dash(Style::Line), tuned.dash(Style::Line), tuned.filling()),
            ("", "6 4", "hollow")
        );
        assert_eq!(looks(&["fpm:default"])[0], tuned);
    }

    #[test]
    fn several_series_of_one_server_differ_by_their_dashes() {
        let looks = looks(&["worker", "worker", "worker"]);
        let dashes: BTreeSet<&str> = looks.iter().map(|look| look.dash(Style::Line)).collect();
        assert_eq!((dashes.len(), looks[0].dash(Style::Line)), (3, ""));
        assert!(looks.iter().all(|look| look.color() == "#d55e00"));
    }

    #[test]
    fn looks_do_not_collide_inside_a_figure() {
        let names: Vec<String> = (0..80).map(|index| format!("server-{index}")).collect();
        let identities: Vec<&str> =
            names.iter().map(String::as_str).chain(["worker", "fpm:default"]).collect();
        let looks: BTreeSet<(usize, usize)> =
            looks(&identities).iter().map(|look| (look.hue, look.variant)).collect();
        assert_eq!(looks.len(), 82);
    }

    #[test]
    fn four_unknown_servers_do_not_borrow_a_known_ones_colour() {
        let looks = looks(&["a", "b", "c", "d"]);
        let hues: BTreeSet<usize> = looks.iter().map(|look| look.hue).collect();
        assert_eq!(hues, BTreeSet::from([12, 13, 14, 15]));
    }
}
