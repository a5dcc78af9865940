//! Path and query of a request in parts, with what is escaped in them undone
//! (RFC 3986, section 2.1).

use dataspace_proto::api::{ApiError, ErrorCode};

/// The parts of a path: `/v1/sessions/a%40b` has three. An empty part stays one, so that `//v1` is not
/// `/v1`.
///
/// # Errors
/// Where an escape is none.
pub(crate) fn parts(path: &str) -> Result<Vec<String>, ApiError> {
    let path = path.strip_prefix('/').unwrap_or(path);
    path.split('/').map(unescaped).collect()
}

/// The names and values of a query.
///
/// # Errors
/// Where an escape is none.
pub(crate) fn query(query: Option<&str>) -> Result<Vec<(String, String)>, ApiError> {
    let pairs = query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
    let both = |pair: &str| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        Ok((unescaped(name)?, unescaped(value)?))
    };
    pairs.map(both).collect()
}

/// The value of the one parameter that a query may have, `name`, which is one of two, or is left out.
///
/// # Errors
/// Any other value, or more than one.
pub(crate) fn choice<'a>(
    query: &'a [(String, String)],
    name: &str,
    [one, other]: [&str; 2],
) -> Result<Option<&'a str>, ApiError> {
    match query {
        [] => Ok(None),
        [(_, value)] if value == one || value == other => Ok(Some(value)),
        _ => {
            let message = format!("{name} is {one} or {other}, once");
            Err(ApiError { code: ErrorCode::BadRequest, message })
        }
    }
}

/// A number as it is printed: neither `+1` nor `01` is another name of 1.
pub(crate) fn number<T: std::str::FromStr + ToString>(text: &str) -> Option<T> {
    text.parse().ok().filter(|number: &T| number.to_string() == text)
}

fn unescaped(text: &str) -> Result<String, ApiError> {
    let wrong = || {
        let message = format!("an escape is % and two digits, and makes UTF-8: {text:?}");
        ApiError { code: ErrorCode::BadRequest, message }
    };
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || char::from(rest.next()?).to_digit(16);
        let value = digit().zip(digit()).map(|(high, low)| high * 16 + low);
        bytes.push(value.and_then(|value| u8::try_from(value).ok()).ok_or_else(wrong)?);
    }
    String::from_utf8(bytes).map_err(|_| wrong())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_undone_within_a_part() {
        assert_eq!(parts("/v1/sessions/a%40b%2Fc").unwrap(), ["v1", "sessions", "a@b/c"]);
        assert_eq!(parts("//v1/health").unwrap(), ["", "v1", "health"]);
        assert_eq!(parts("/v1/health/").unwrap(), ["v1", "health", ""]);
        for wrong in ["/%", "/%4", "/%zz", "/%ff", "/a%+1"] {
            assert_eq!(parts(wrong).unwrap_err().code, ErrorCode::BadRequest, "{wrong}");
        }
        let pairs = query(Some("a=b%3Dc&&d")).unwrap();
        assert_eq!(pairs, [("a".into(), "b=c".into()), ("d".into(), String::new())]);
        assert!(query(Some("a=%0")).is_err());
    }

    #[test]
    fn a_number_is_spelled_in_one_way() {
        assert_eq!(number::<u64>("17"), Some(17));
        for wrong in ["+1", "01", "-1", "", " 1", "1_0", "99999999999999999999"] {
            assert_eq!(number::<u64>(wrong), None, "{wrong}");
        }
    }
}
