//! Times in Go's layouts, in which `2006-01-02` stands for year, month and day.

use jiff::civil::{DateTime, Weekday};
use jiff::tz::{Offset, TimeZone};
use jiff::{Timestamp, ZonedDateTime};
use std::fmt::Write;
use std::time::SystemTime;

/// How a time is printed that nothing is said about (`time.Time.String`).
pub(crate) const PRINTED: &str = "2006-01-02 15:04:05.999999999 -0700 MST";
pub(crate) const RFC1123Z: &str = "Mon, 02 Jan 2006 15:04:05 -0700";

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const DAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

/// What a piece of a layout stands for. The order is that in which a layout is searched: longer pieces before those that
/// they begin with.
const PIECES: &[(&str, Piece)] = &[
    ("January", Piece::LongMonth),
    ("Jan", Piece::ShortMonth),
    ("Monday", Piece::LongDay),
    ("Mon", Piece::ShortDay),
    ("MST", Piece::ZoneName),
    ("2006", Piece::Year),
    ("002", Piece::DayOfYear),
    ("01", Piece::Month2),
    ("02", Piece::Day2),
    ("03", Piece::Hour12Of2),
    ("04", Piece::Minute2),
    ("05", Piece::Second2),
    ("06", Piece::ShortYear),
    ("-07:00:00", Piece::OffsetColonSeconds),
    ("-07:00", Piece::OffsetColon),
    ("-0700", Piece::Offset),
    ("-07", Piece::OffsetHours),
    ("Z07:00", Piece::IsoOffsetColon),
    ("Z0700", Piece::IsoOffset),
    ("Z07", Piece::IsoOffsetHours),
    ("15", Piece::Hour24),
    ("1", Piece::Month),
    ("_2006", Piece::SpaceYear),
    ("__2", Piece::SpaceDayOfYear),
    ("_2", Piece::SpaceDay),
    ("2", Piece::Day),
    ("3", Piece::Hour12),
    ("4", Piece::Minute),
    ("5", Piece::Second),
    ("PM", Piece::UpperPm),
    ("pm", Piece::LowerPm),
];

#[derive(Debug, Clone, Copy, PartialEq)]
enum Piece {
    LongMonth,
    ShortMonth,
    Month,
    Month2,
    LongDay,
    ShortDay,
    Day,
    SpaceDay,
    Day2,
    DayOfYear,
    SpaceDayOfYear,
    Hour24,
    Hour12,
    Hour12Of2,
    Minute,
    Minute2,
    Second,
    Second2,
    Year,
    SpaceYear,
    ShortYear,
    UpperPm,
    LowerPm,
    ZoneName,
    Offset,
    OffsetColon,
    OffsetColonSeconds,
    OffsetHours,
    IsoOffset,
    IsoOffsetColon,
    IsoOffsetHours,
    /// `.000`: so many digits; with nines, without zeros at the end.
    Fraction {
        digits: usize,
        trimmed: bool,
    },
}

pub(crate) fn month_name(month: i8) -> &'static str {
    usize::try_from(month - 1).ok().and_then(|index| MONTHS.get(index)).copied().unwrap_or_default()
}

pub(crate) fn weekday_name(day: Weekday) -> &'static str {
    usize::try_from(day.to_monday_zero_offset())
        .ok()
        .and_then(|index| DAYS.get(index))
        .copied()
        .unwrap_or_default()
}

/// The layout cut at its first piece: the text before, the piece, and what follows.
fn next_piece(layout: &str) -> Option<(&str, Piece, &str)> {
    layout.char_indices().find_map(|(at, _)| {
        let rest = &layout[at..];
        let (piece, length) = fraction(rest).or_else(|| {
            let known = PIECES.iter().find(|(text, _)| rest.starts_with(text))?;
            // "Jan" within another word is none, as in Go.
            let is_word = *known == ("Jan", Piece::ShortMonth) || *known == ("Mon", Piece::ShortDay);
            let goes_on = rest[known.0.len()..].starts_with(|c: char| c.is_ascii_lowercase());
            (!(is_word && goes_on)).then_some((known.1, known.0.len()))
        })?;
        Some((&layout[..at], piece, &layout[at + length..]))
    })
}

fn fraction(rest: &str) -> Option<(Piece, usize)> {
    let digit = rest.strip_prefix(['.', ','])?.chars().next().filter(|c| matches!(c, '0' | '9'))?;
    let digits = rest[1..].chars().take_while(|c| *c == digit).count();
    let goes_on = rest[1 + digits..].starts_with(|c: char| c.is_ascii_digit());
    (!goes_on).then_some((Piece::Fraction { digits: digits.min(9), trimmed: digit == '9' }, 1 + digits))
}

/// A time in UTC. One that no calendar of 10,000 years has is empty.
pub fn utc_in_layout(time: SystemTime, layout: &str) -> String {
    let time = Timestamp::try_from(time).map(|time| time.to_zoned_datetime(TimeZone::UTC));
    time.map(|time| format(&time, layout)).unwrap_or_default()
}

pub(crate) fn format(time: &ZonedDateTime, layout: &str) -> String {
    let mut out = String::with_capacity(layout.len() + 16);
    let mut rest = layout;
    while let Some((before, piece, after)) = next_piece(rest) {
        out.push_str(before);
        let mark = rest[before.len()..].chars().next().unwrap_or('.');
        // A text can always be written to.
        let _ = write_piece(&mut out, time, piece, mark);
        rest = after;
    }
    out.push_str(rest);
    out
}

fn write_piece(out: &mut String, time: &ZonedDateTime, piece: Piece, mark: char) -> std::fmt::Result {
    let hour12 = (time.hour() + 11) % 12 + 1;
    match piece {
        Piece::LongMonth => write!(out, "{}", month_name(time.month())),
        Piece::ShortMonth => write!(out, "{}", &month_name(time.month())[..3]),
        Piece::Month => write!(out, "{}", time.month()),
        Piece::Month2 => write!(out, "{:02}", time.month()),
        Piece::LongDay => write!(out, "{}", weekday_name(time.weekday())),
        Piece::ShortDay => write!(out, "{}", &weekday_name(time.weekday())[..3]),
        Piece::Day => write!(out, "{}", time.day()),
        Piece::SpaceDay => write!(out, "{:>2}", time.day()),
        Piece::Day2 => write!(out, "{:02}", time.day()),
        Piece::DayOfYear => write!(out, "{:03}", time.day_of_year()),
        Piece::SpaceDayOfYear => write!(out, "{:>3}", time.day_of_year()),
        Piece::Hour24 => write!(out, "{:02}", time.hour()),
        Piece::Hour12 => write!(out, "{hour12}"),
        Piece::Hour12Of2 => write!(out, "{hour12:02}"),
        Piece::Minute => write!(out, "{}", time.minute()),
        Piece::Minute2 => write!(out, "{:02}", time.minute()),
        Piece::Second => write!(out, "{}", time.second()),
        Piece::Second2 => write!(out, "{:02}", time.second()),
        Piece::Year => write!(out, "{:04}", time.year()),
        Piece::SpaceYear => write!(out, "_{:04}", time.year()),
        Piece::ShortYear => write!(out, "{:02}", time.year().rem_euclid(100)),
        Piece::UpperPm => write!(out, "{}", if time.hour() >= 12 { "PM" } else { "AM" }),
        Piece::LowerPm => write!(out, "{}", if time.hour() >= 12 { "pm" } else { "am" }),
        Piece::ZoneName => write!(out, "{}", time.strftime("%Z")),
        Piece::Fraction { digits, trimmed } => write_fraction(out, time, digits, trimmed, mark),
        Piece::IsoOffset | Piece::IsoOffsetColon | Piece::IsoOffsetHours if time.offset().seconds() == 0 => {
            write!(out, "Z")
        }
        _ => write_offset(out, time.offset().seconds(), piece),
    }
}

fn write_fraction(
    out: &mut String,
    time: &ZonedDateTime,
    digits: usize,
    trimmed: bool,
    mark: char,
) -> std::fmt::Result {
    let all = format!("{:09}", time.subsec_nanosecond());
    let mut shown = &all[..digits];
    if trimmed {
        shown = shown.trim_end_matches('0');
    }
    if shown.is_empty() { Ok(()) } else { write!(out, "{mark}{shown}") }
}

fn write_offset(out: &mut String, seconds: i32, piece: Piece) -> std::fmt::Result {
    let sign = if seconds < 0 { '-' } else { '+' };
    let all = seconds.unsigned_abs();
    let (hours, minutes, seconds) = (all / 3600, all / 60 % 60, all % 60);
    match piece {
        Piece::OffsetHours | Piece::IsoOffsetHours => write!(out, "{sign}{hours:02}"),
        Piece::OffsetColon | Piece::IsoOffsetColon => write!(out, "{sign}{hours:02}:{minutes:02}"),
        Piece::OffsetColonSeconds => write!(out, "{sign}{hours:02}:{minutes:02}:{seconds:02}"),
        _ => write!(out, "{sign}{hours:02}{minutes:02}"),
    }
}

/// Reads a time that is written in this layout; without a zone in it, it is one of `zone`.
///
/// # Errors
/// With the reason, in words.
pub(crate) fn parse(layout: &str, text: &str, zone: TimeZone) -> Result<ZonedDateTime, String> {
    let mut found = Found { year: 0, month: 1, day: 1, ..Found::default() };
    let (mut layout_rest, mut rest) = (layout, text);
    let wrong = || format!("`{text}` is not written as `{layout}`");
    while let Some((before, piece, after)) = next_piece(layout_rest) {
        rest = rest.strip_prefix(before).ok_or_else(wrong)?;
        rest = found.read(piece, rest).ok_or_else(wrong)?;
        // Go takes a fraction behind the seconds though the layout has none.
        if matches!(piece, Piece::Second | Piece::Second2) && fraction(after).is_none() {
            rest = found.read(Piece::Fraction { digits: 9, trimmed: true }, rest).ok_or_else(wrong)?;
        }
        layout_rest = after;
    }
    if rest != layout_rest {
        return Err(wrong());
    }
    found.time(zone).ok_or_else(|| format!("`{text}` is no time"))
}

#[derive(Default)]
struct Found {
    year: i16,
    month: i8,
    day: i8,
    hour: i8,
    minute: i8,
    second: i8,
    nanosecond: i32,
    /// Whether `PM` or `AM` stands there.
    pm: Option<bool>,
    offset: Option<Offset>,
}

impl Found {
    /// What follows the piece; `None` if it is not there.
    fn read<'a>(&mut self, piece: Piece, rest: &'a str) -> Option<&'a str> {
        let number = |least: usize, most: usize| -> Option<(i16, &'a str)> {
            let digits = rest.bytes().take(most).take_while(u8::is_ascii_digit).count();
            if digits < least {
                return None;
            }
            Some((rest[..digits].parse().ok()?, &rest[digits..]))
        };
        let small = |(value, rest): (i16, &'a str)| Some((i8::try_from(value).ok()?, rest));
        match piece {
            Piece::Year | Piece::SpaceYear => (self.year, _) = number(4, 4)?,
            Piece::ShortYear => {
                let (year, after) = number(2, 2)?;
                self.year = if year >= 69 { 1900 + year } else { 2000 + year };
                return Some(after);
            }
            Piece::LongMonth => {
                return read_name(rest, &MONTHS, 9).map(|(at, rest)| self.set_month(at, rest));
            }
            Piece::ShortMonth => {
                return read_name(rest, &MONTHS, 3).map(|(at, rest)| self.set_month(at, rest));
            }
            Piece::LongDay => return read_name(rest, &DAYS, 9).map(|(_, rest)| rest),
            Piece::ShortDay => return read_name(rest, &DAYS, 3).map(|(_, rest)| rest),
            Piece::Month | Piece::Month2 => (self.month, _) = small(number(1, 2)?)?,
            Piece::Day | Piece::Day2 => (self.day, _) = small(number(1, 2)?)?,
            Piece::SpaceDay => return self.read(Piece::Day, rest.strip_prefix(' ').unwrap_or(rest)),
            Piece::Hour24 | Piece::Hour12 | Piece::Hour12Of2 => (self.hour, _) = small(number(1, 2)?)?,
            Piece::Minute | Piece::Minute2 => (self.minute, _) = small(number(1, 2)?)?,
            Piece::Second | Piece::Second2 => (self.second, _) = small(number(1, 2)?)?,
            Piece::DayOfYear | Piece::SpaceDayOfYear => return None,
            Piece::UpperPm | Piece::LowerPm => {
                let half = rest.get(..2)?;
                self.pm = match half.to_ascii_uppercase().as_str() {
                    "AM" => Some(false),
                    "PM" => Some(true),
                    _ => return None,
                };
                return Some(&rest[2..]);
            }
            Piece::Fraction { .. } => return self.read_fraction(rest),
            Piece::ZoneName => {
                let letters = rest.bytes().take(5).take_while(u8::is_ascii_uppercase).count();
                self.offset = self.offset.or((letters >= 3).then_some(Offset::UTC));
                return (letters >= 3).then(|| &rest[letters..]);
            }
            _ => return self.read_offset(rest),
        }
        let digits = if matches!(piece, Piece::Year | Piece::SpaceYear) { 4 } else { 2 };
        number(1, digits).map(|(_, after)| after)
    }

    fn set_month<'a>(&mut self, at: usize, rest: &'a str) -> &'a str {
        self.month = i8::try_from(at + 1).unwrap_or(1);
        rest
    }

    /// There may be none.
    fn read_fraction<'a>(&mut self, rest: &'a str) -> Option<&'a str> {
        let Some(digits) = rest.strip_prefix(['.', ',']) else { return Some(rest) };
        let count = digits.bytes().take_while(u8::is_ascii_digit).count();
        if count == 0 {
            return Some(rest);
        }
        self.nanosecond = format!("{:0<9.9}", &digits[..count]).parse().ok()?;
        Some(&digits[count..])
    }

    fn read_offset<'a>(&mut self, rest: &'a str) -> Option<&'a str> {
        if let Some(after) = rest.strip_prefix('Z') {
            self.offset = Some(Offset::UTC);
            return Some(after);
        }
        let length = rest.find(|c: char| !matches!(c, '+' | '-' | ':' | '0'..='9')).unwrap_or(rest.len());
        self.offset = Some(offset(&rest[..length])?);
        Some(&rest[length..])
    }

    fn time(self, zone: TimeZone) -> Option<ZonedDateTime> {
        let hour = match self.pm {
            Some(true) if self.hour < 12 => self.hour + 12,
            Some(false) if self.hour == 12 => 0,
            _ => self.hour,
        };
        let time =
            DateTime::new(self.year, self.month, self.day, hour, self.minute, self.second, self.nanosecond);
        let zone = match self.offset {
            Some(offset) if offset == Offset::UTC => TimeZone::UTC,
            Some(offset) => TimeZone::fixed(offset),
            None => zone,
        };
        time.ok()?.to_zoned_datetime(zone).ok()
    }
}

/// `+02`, `+0200`, `+02:00` or `-02:00:30`.
pub(crate) fn offset(text: &str) -> Option<Offset> {
    let sign = match text.as_bytes().first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let digits: String = text[1..].chars().filter(|c| *c != ':').collect();
    if !matches!(digits.len(), 2 | 4 | 6) || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let part = |at: usize| digits.get(at..at + 2).map_or(Some(0), |part| part.parse::<i32>().ok());
    Offset::from_seconds(sign * (part(0)? * 3600 + part(2)? * 60 + part(4)?)).ok()
}

/// The index of the name that stands there, of which `most` letters count.
fn read_name<'a>(rest: &'a str, names: &[&str], most: usize) -> Option<(usize, &'a str)> {
    names.iter().enumerate().find_map(|(at, name)| {
        let name = &name[..name.len().min(most)];
        let start = rest.get(..name.len())?;
        start.eq_ignore_ascii_case(name).then(|| (at, &rest[name.len()..]))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> ZonedDateTime {
        text.parse().unwrap()
    }

    #[test]
    fn layouts() {
        let time = at("2026-05-04T15:02:01.5678[UTC]");
        for (layout, text) in [
            ("2006-01-02", "2026-05-04"),
            ("Mon, 02 Jan 2006 15:04:05 MST", "Mon, 04 May 2026 15:02:01 UTC"),
            ("Monday, January 2, 2006 at 3:04pm", "Monday, May 4, 2026 at 3:02pm"),
            ("2006-01-02T15:04:05.000Z07:00", "2026-05-04T15:02:01.567Z"),
            ("05.999999 -0700 _2 002 06", "01.5678 +0000  4 124 26"),
            ("Janet", "Janet"),
        ] {
            assert_eq!(format(&time, layout), text, "{layout}");
        }
    }

    #[test]
    fn what_is_written_can_be_read() {
        for (layout, text, time) in [
            (RFC1123Z, "Fri, 05 May 2022 15:04:05 +0200", "2022-05-05T15:04:05+02:00[+02:00]"),
            ("2006-Jan-02", "2022-May-05", "2022-05-05T00:00[UTC]"),
            ("1/2/06 3:04 PM", "5/4/26 3:02 PM", "2026-05-04T15:02[UTC]"),
            ("2006-01-02T15:04:05Z07:00", "2026-05-04T15:02:01.25Z", "2026-05-04T15:02:01.25[UTC]"),
        ] {
            assert_eq!(parse(layout, text, TimeZone::UTC).unwrap(), at(time), "{layout}");
        }
        for (layout, text) in [("2006-01-02", "2026-13-01"), ("2006-01-02", "2026-1"), ("2006", "2026 x")] {
            assert!(parse(layout, text, TimeZone::UTC).is_err(), "{text}");
        }
    }
}
