//! URI templates, read backwards: which strings can a template expand to?
//!
//! Part by part of the template goes from the set of places of the topic that the parts before it can end at to those that
//! it can end at itself. There are no more places than bytes, and each is looked at once for each variable, whatever the
//! template is. Loops over places have no branches where that is possible: a hub does this for each update and template.

use super::{Characters, Expression, Modifier, Operator, Part, Variable, parts};
use std::cell::OnceCell;

/// A topic, as templates are compared with it.
pub(crate) struct Topic<'a> {
    text: &'a str,
    /// Made for the first template that comes near.
    lengths: OnceCell<Lengths>,
}

/// Bytes of the character, or of the encoded byte, that is at each place of a topic; 0: none that may be in a value.
struct Lengths {
    unreserved: Vec<u8>,
    reserved: Vec<u8>,
    /// Unreserved ones, or commas, which separate a list without `*`.
    list: Vec<u8>,
    /// Characters that are encoded whole, since prefixes are counted in them.
    whole: Vec<u8>,
}

/// A set of places between the bytes of a topic: 1 for those that are in it.
#[derive(Clone)]
struct Places(Vec<u8>);

/// A template's way through a topic.
struct Way<'a> {
    topic: &'a [u8],
    lengths: &'a Lengths,
}

impl<'a> Topic<'a> {
    pub fn new(text: &'a str) -> Self {
        Self { text, lengths: OnceCell::new() }
    }

    pub fn text(&self) -> &'a str {
        self.text
    }

    /// Whether it is an expansion of the template.
    pub(super) fn expands(&self, template: &str) -> bool {
        let topic = self.text.as_bytes();
        let way = Way { topic, lengths: self.lengths.get_or_init(|| Lengths::of(topic)) };
        let mut reached = way.nowhere();
        reached.0[0] = 1;
        for part in parts(template) {
            match part {
                Some(Part::Literal(literal)) => reached = way.after(&reached, literal.as_bytes()),
                Some(Part::Expression(expression)) => way.expand(&mut reached, &expression),
                None => return false,
            }
            if reached.first().is_none() {
                return false;
            }
        }
        reached.0[topic.len()] == 1
    }
}

impl Lengths {
    fn of(topic: &[u8]) -> Self {
        let each =
            |length: &dyn Fn(usize) -> usize| (0..topic.len()).map(|place| length(place) as u8).collect();
        let unreserved = |place| character(topic, place, Characters::Unreserved);
        Self {
            unreserved: each(&unreserved),
            reserved: each(&|place| character(topic, place, Characters::Reserved)),
            list: each(&|place| if topic[place] == b',' { 1 } else { unreserved(place) }),
            whole: each(&|place| whole_character(topic, place)),
        }
    }
}

impl Way<'_> {
    fn nowhere(&self) -> Places {
        Places(vec![0; self.topic.len() + 1])
    }

    fn after(&self, from: &Places, text: &[u8]) -> Places {
        let mut reached = self.nowhere();
        match text {
            [] => return from.clone(),
            [byte] => {
                let there = from.0.iter().zip(self.topic).map(|(from, there)| from & u8::from(there == byte));
                reached.0[1..].iter_mut().zip(there).for_each(|(reached, is_there)| *reached = is_there);
            }
            _ => {
                let places = from.0.iter().enumerate().filter(|(_, is_in)| **is_in == 1);
                for (place, _) in places.filter(|(place, _)| self.topic[*place..].starts_with(text)) {
                    reached.0[place + text.len()] = 1;
                }
            }
        }
        reached
    }

    /// Adds what is reached if one variable is defined, or several. One that is not leaves nothing behind, neither its
    /// separator.
    fn expand(&self, reached: &mut Places, expression: &Expression<'_>) {
        let operator = expression.operator;
        let begun = self.after(reached, operator.first.as_bytes());
        if begun.first().is_none() {
            return;
        }
        let mut ended = self.nowhere();
        for variable in expression.variables().flatten() {
            let mut from = self.after(&ended, &[operator.separator]);
            from.add(&begun);
            ended.add(&self.value(from, operator, &variable));
        }
        reached.add(&ended);
    }

    /// Where a defined variable can end.
    fn value(&self, from: Places, operator: &Operator, variable: &Variable<'_>) -> Places {
        match (variable.modifier, operator.is_named) {
            (Modifier::Explode, false) => self.items(from, operator),
            (Modifier::Explode, true) => self.pairs(from, operator),
            (modifier, false) => self.text(from, operator.characters, modifier),
            (modifier, true) => {
                let named = self.after(&from, variable.name.as_bytes());
                if named.first().is_none() {
                    return named;
                }
                let mut reached = self.text(self.after(&named, b"="), operator.characters, modifier);
                if operator.if_empty.is_empty() {
                    reached.add(&named);
                }
                reached
            }
        }
    }

    fn text(&self, from: Places, characters: Characters, modifier: Modifier) -> Places {
        let lengths = self.lengths;
        match (modifier, characters) {
            (Modifier::Prefix(most), Characters::Unreserved) => start(&from, &lengths.whole, most),
            (Modifier::Prefix(most), Characters::Reserved) => start(&from, &lengths.reserved, most),
            (_, Characters::Unreserved) => all(from, &lengths.list),
            (_, Characters::Reserved) => all(from, &lengths.reserved),
        }
    }

    fn characters(&self, operator: &Operator) -> &[u8] {
        match operator.characters {
            Characters::Unreserved => &self.lengths.unreserved,
            Characters::Reserved => &self.lengths.reserved,
        }
    }

    /// Values, or keys with values, with separators between them.
    fn items(&self, from: Places, operator: &Operator) -> Places {
        let (mut keys, mut values) = (from, self.nowhere());
        let begin = keys.first().unwrap_or(self.topic.len());
        for (place, length) in self.characters(operator).iter().enumerate().skip(begin) {
            let (in_key, in_value, byte) = (keys.0[place], values.0[place], self.topic[place]);
            let behind = place + usize::from(*length);
            keys.0[behind] |= in_key;
            values.0[behind] |= in_value;
            values.0[place + 1] |= in_key & u8::from(byte == b'=');
            keys.0[place + 1] |= (in_key | in_value) & u8::from(byte == operator.separator);
        }
        keys.add(&values);
        keys
    }

    /// Keys, each with a value or, where that may be, without one, with separators between them.
    fn pairs(&self, from: Places, operator: &Operator) -> Places {
        let may_be_bare = u8::from(operator.if_empty.is_empty());
        let (mut begun, mut keys, mut values) = (from, self.nowhere(), self.nowhere());
        let begin = begun.first().unwrap_or(self.topic.len());
        for (place, length) in self.characters(operator).iter().enumerate().skip(begin) {
            let (in_key, in_value, byte) = (keys.0[place], values.0[place], self.topic[place]);
            let behind = place + usize::from(*length);
            keys.0[behind] |= (in_key | begun.0[place]) & u8::from(*length > 0);
            values.0[behind] |= in_value;
            values.0[place + 1] |= in_key & u8::from(byte == b'=');
            begun.0[place + 1] |= (in_value | in_key & may_be_bare) & u8::from(byte == operator.separator);
        }
        if may_be_bare == 1 {
            values.add(&keys);
        }
        values
    }
}

impl Places {
    fn add(&mut self, others: &Self) {
        self.0.iter_mut().zip(&others.0).for_each(|(place, other)| *place |= other);
    }

    fn first(&self) -> Option<usize> {
        self.0.iter().position(|is_in| *is_in == 1)
    }
}

/// Any number of characters of these lengths.
fn all(mut reached: Places, lengths: &[u8]) -> Places {
    let begin = reached.first().unwrap_or(lengths.len());
    for (place, length) in lengths.iter().enumerate().skip(begin) {
        reached.0[place + usize::from(*length)] |= reached.0[place];
    }
    reached
}

/// At most so many characters of these lengths.
fn start(from: &Places, lengths: &[u8], most: u16) -> Places {
    // How many may still come from a place, and one more; 0: it is not reached.
    let mut left: Vec<u16> = from.0.iter().map(|is_in| u16::from(*is_in) * (most + 1)).collect();
    let begin = from.first().unwrap_or(lengths.len());
    for (place, length) in lengths.iter().enumerate().skip(begin).filter(|(_, length)| **length > 0) {
        let behind = place + usize::from(*length);
        left[behind] = left[behind].max(left[place].saturating_sub(1));
    }
    Places(left.iter().map(|left| u8::from(*left > 0)).collect())
}

fn character(topic: &[u8], place: usize, characters: Characters) -> usize {
    match topic[place] {
        b'%' if encoded(topic, place).is_some() => 3,
        byte if !byte.is_ascii() => utf8_length(byte),
        byte if byte.is_ascii_alphanumeric() || b"._~-".contains(&byte) => 1,
        byte if characters == Characters::Reserved && b":/?#[]@!$&'()*+,;=".contains(&byte) => 1,
        _ => 0,
    }
}

fn whole_character(topic: &[u8], place: usize) -> usize {
    let Some(first) = encoded(topic, place) else { return character(topic, place, Characters::Unreserved) };
    let bytes = if first.is_ascii() { 1 } else { utf8_length(first) };
    let is_rest =
        |byte: usize| encoded(topic, place + 3 * byte).is_some_and(|byte| (0x80..0xC0).contains(&byte));
    let is_first = first.is_ascii() || (0xC0..0xF8).contains(&first);
    if is_first && (1..bytes).all(is_rest) { 3 * bytes } else { 0 }
}

/// The byte that is percent-encoded there.
fn encoded(topic: &[u8], place: usize) -> Option<u8> {
    let [b'%', high, low, ..] = *topic.get(place..)? else { return None };
    let digit = |byte: u8| (byte as char).to_digit(16);
    u8::try_from(digit(high)? << 4 | digit(low)?).ok()
}

/// Of a character that begins with this byte, which is not ASCII. Bytes within one are not reached, but have a length here:
/// it must not lead beyond the topic.
fn utf8_length(first: u8) -> usize {
    match first {
        0xF0.. => 4,
        0xE0.. => 3,
        0xC0.. => 2,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use crate::template::{Template, Topic, oracle};
    use proptest::prelude::*;
    use regex_lite::RegexBuilder;

    fn matches(template: &str, topic: &str) -> bool {
        let known = Template::of(template).unwrap_or_else(|| panic!("{template} is no template"));
        known.fits(template, &Topic::new(topic))
    }

    /// What the regular expression says. `None`: it is no template.
    fn asked(template: &str, topic: &str) -> Option<bool> {
        let pattern = oracle::pattern(template)?;
        let regex = RegexBuilder::new(&pattern).size_limit(usize::MAX).build();
        Some(regex.unwrap_or_else(|error| panic!("{pattern}: {error}")).is_match(topic))
    }

    #[test]
    fn expansions_of_rfc_6570_are_found() {
        // Section 3.2, with the values of its table.
        for (template, topic) in [
            ("{var}", "value"),
            ("{hello}", "Hello%20World%21"),
            ("{half}", "50%25"),
            ("O{empty}X", "OX"),
            ("O{undef}X", "OX"),
            ("{x,y}", "1024,768"),
            ("{x,hello,y}", "1024,Hello%20World%21,768"),
            ("?{x,empty}", "?1024,"),
            ("?{undef,y}", "?768"),
            ("{var:3}", "val"),
            ("{var:30}", "value"),
            ("{list}", "red,green,blue"),
            ("{keys*}", "semi=%3B,dot=.,comma=%2C"),
            ("{+base}index", "http://example.com/home/index"),
            ("up{+path}{var}/here", "up/foo/barvalue/here"),
            ("{+path:6}/here", "/foo/b/here"),
            ("{#path,x}/here", "#/foo/bar,1024/here"),
            ("{#path:6}here", "#/foo/bhere"),
            ("X{.list*}", "X.red.green.blue"),
            ("X{.var:3}", "X.val"),
            ("{/who,dub}", "/fred/me%2Ftoo"),
            ("{/var,undef}", "/value"),
            ("{/list*,path:4}", "/red/green/blue/%2Ffoo"),
            ("{;x,y,empty}", ";x=1024;y=768;empty"),
            ("{;v,empty,who}", ";v=6;empty;who=fred"),
            ("{;keys*}", ";semi=%3B;dot=.;comma=%2C"),
            ("{?x,y,empty}", "?x=1024&y=768&empty="),
            ("{?x,y,undef}", "?x=1024&y=768"),
            ("{?list*}", "?list=red&list=green&list=blue"),
            ("?fixed=yes{&x}", "?fixed=yes&x=1024"),
        ] {
            assert!(matches(template, topic), "{template} {topic}");
        }
    }

    #[test]
    fn the_example_of_the_specification() {
        let template = "https://example.com/users/foo/{?topic}";
        let topic = "https://example.com/users/foo/?topic=https%3A%2F%2Fexample.com%2Fbooks%2F1";
        assert!(matches(template, topic));
        assert!(!matches(template, &topic.replace("foo", "bar")));
    }

    #[test]
    fn what_a_template_cannot_expand_to() {
        for (template, topic) in [
            ("https://example.com/books/{id}", "https://example.com/books/1/pages"),
            ("https://example.com/books/{id}", "https://example.com/books/1?x"),
            ("https://example.com/books/{id}", "http://example.com/books/1"),
            ("https://example.com/books/{id}", "https://exampleXcom/books/1"),
            ("/a{/b}", "/a/1/2"),
            ("/{var:3}", "/value"),
            ("{?x}", "?y=1"),
            ("{?x}", "x=1"),
            ("{x}", "a\nb"),
            ("a{x}", "a\n"),
            ("a{x}b", "xa1b"),
        ] {
            assert!(!matches(template, topic), "{template} {topic}");
        }
    }

    #[test]
    fn prefixes_count_characters_not_bytes() {
        assert!(matches("{var:2}", "%C3%A9%E2%82%AC"));
        assert!(!matches("{var:2}", "%C3%A9%E2%82%ACx"));
        assert!(matches("{var:1}", "é"));
    }

    proptest! {
        /// Of any text, and any topic.
        #[test]
        fn the_oracle_says_the_same_of_any_text(
            template in "[ab{}+#./;?&:*,0-3é%=]{0,24}",
            topic in "[ab+#./;?&:,=%0-9AEé]{0,12}",
        ) {
            prop_assert_eq!(Template::of(&template).map(|known| known.fits(&template, &Topic::new(&topic))), asked(&template, &topic));
        }

        /// Of templates, and topics that look like their expansions.
        #[test]
        fn the_oracle_says_the_same_of_templates(
            template in "([a/]{0,1}\\{[+#./;?&]{0,1}(a|b|c)(\\*|:1|:2|:5)?(,(a|b)(\\*|:2)?){0,2}\\}){1,3}[b/]{0,1}",
            topic in "([ab/]|,|[?&;][abc]=?|=|[./#+]|%41|%C3%A9|%C3|%E2%82%AC|%F0%9F%98%80|%FF|é|€| ){0,8}",
        ) {
            prop_assert_eq!(Template::of(&template).map(|known| known.fits(&template, &Topic::new(&topic))), asked(&template, &topic));
        }

        #[test]
        fn a_template_finds_its_own_expansions(
            start in "[a-z:/.?()*]{0,10}",
            value in "([a-zA-Z0-9._~-]|%[0-9A-F][0-9A-F]){0,20}",
            end in "[a-z/.$^]{0,10}",
        ) {
            let template = format!("{start}{{id}}{end}");
            let topic = format!("{start}{value}{end}");
            prop_assert!(matches(&template, &topic));
            let other = format!("{start}{value}/{end}");
            // A slash is no part of a value: it has to be one of the literals'.
            if !start.contains('/') && !end.contains('/') {
                prop_assert!(!matches(&template, &other));
            }
        }
    }

    #[test]
    fn what_is_long_and_hostile_is_looked_at_in_time_and_memory_that_is_bounded() {
        let long = "a".repeat(8000);
        for template in [
            "{+a}".repeat(16),
            "{a*,b*,c*,d*,e*,f*,g*,h*,i*,j*,k*,l*,m*,n*,o*,p*}".into(),
            "{?a*,b*,c*,d*,e*,f*,g*,h*,i*,j*,k*,l*,m*,n*,o*,p*}".into(),
            "{a:9999}".repeat(16),
            format!("{{a}}{}{{b}}", "a".repeat(4000)),
        ] {
            assert!(!matches(&template, &format!("{long}\n")), "{template}");
            assert!(!matches(&template, &format!("{}\n", "?a=&".repeat(2000))), "{template}");
        }
        assert!(matches(&"{a:9999}".repeat(16), &long));
    }
}
