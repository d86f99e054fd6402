//! Civil dates as nanoseconds since 1970, without time zones: the proleptic Gregorian calendar.

/// Days from 1970-01-01 to a date (Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms",
/// `days_from_civil`).
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

/// `Sat May 30 00:03:06 1992`, as C's `ctime` writes it, in ns since 1970 of its own zone.
pub(crate) fn parse_ctime(text: &str) -> Option<i64> {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let words: Vec<&str> = text.split_whitespace().collect();
    // A zone name may stand between time and year.
    let [_, month, day, time, .., year] = words.as_slice() else { return None };
    let month = MONTHS.iter().position(|name| name == month)? as i64 + 1;
    let day: i64 = day.parse().ok()?;
    let year: i64 = year.parse().ok()?;
    let mut clock = time.split(':').map(|part| part.parse::<i64>().ok());
    let (hour, minute, second) = (clock.next()??, clock.next()??, clock.next()??);
    let valid = (1..=31).contains(&day)
        && (1900..=2200).contains(&year)
        && (0..24).contains(&hour)
        && (0..60).contains(&minute)
        && (0..=60).contains(&second);
    if !valid {
        return None;
    }
    let seconds = days_from_civil(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second;
    Some(seconds * 1_000_000_000)
}

/// `1992-05-30 00:03:06.123` for people.
#[must_use]
pub fn civil_text(ns: i64) -> String {
    let seconds = ns.div_euclid(1_000_000_000);
    let milliseconds = ns.rem_euclid(1_000_000_000) / 1_000_000;
    let (day, second_of_day) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    // The inverse of `days_from_civil`, same source.
    let shifted = day + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_shifted = (5 * day_of_year + 2) / 153;
    let day_of_month = day_of_year - (153 * month_shifted + 2) / 5 + 1;
    let month = if month_shifted < 10 { month_shifted + 3 } else { month_shifted - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    format!(
        "{year:04}-{month:02}-{day_of_month:02} {:02}:{:02}:{:02}.{milliseconds:03}",
        second_of_day / 3600,
        second_of_day / 60 % 60,
        second_of_day % 60
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_go_there_and_back() {
        let start = parse_ctime("Sat May 30 00:03:06 1992").expect("a date");
        assert_eq!(start, 707_184_186_000_000_000);
        assert_eq!(civil_text(start), "1992-05-30 00:03:06.000");
        assert_eq!(parse_ctime("Thu Jan  1 00:00:00 UTC 1970"), Some(0));
        assert_eq!(parse_ctime("Sat May 30 1992"), None);
    }
}
