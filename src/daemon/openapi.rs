//! The document that describes the API to programs (OpenAPI 3.1), as the daemon serves it.

use bytes::Bytes;

/// Written by hand, and held to the routes by the tests below, and to the answers of a living daemon by
/// those of `tests/end_to_end/daemon_api.rs`.
const DOCUMENT: &str = include_str!("openapi.json");

/// The document.
pub(super) const fn document() -> Bytes {
    Bytes::from_static(DOCUMENT.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::super::route::{ANY, Endpoint, ROUTES};
    use super::*;
    use dataspace_proto::api::{ApiError, ErrorCode, SessionSpec};
    use serde_json::{Value, json};
    use std::collections::BTreeSet;

    fn read() -> Value {
        serde_json::from_str(DOCUMENT).unwrap()
    }

    fn keys(value: &Value) -> BTreeSet<String> {
        value.as_object().unwrap().keys().cloned().collect()
    }

    #[test]
    fn every_route_is_described_and_nothing_else() {
        let document = read();
        let operations = |(path, item): (&String, &Value)| {
            let path = path.clone();
            keys(item).into_iter().map(move |method| (path.clone(), method.to_uppercase()))
        };
        let described: BTreeSet<(String, String)> =
            document["paths"].as_object().unwrap().iter().flat_map(operations).collect();
        let known: BTreeSet<(String, String)> =
            ROUTES.iter().map(|(method, path, _)| ((*path).into(), method.to_string())).collect();
        assert_eq!(described, known);
    }

    #[test]
    fn every_status_and_parameter_is_described_and_nothing_else() {
        let document = read();
        for (method, path, endpoint) in &ROUTES {
            let operation = &document["paths"][path][method.as_str().to_lowercase()];
            let codes = endpoint.errors().iter().chain(&ANY);
            let mut known: BTreeSet<String> =
                codes.map(|code| code.http_status().to_string()).collect();
            known.insert(endpoint.success().as_u16().to_string());
            assert_eq!(keys(&operation["responses"]), known, "{method} {path}");
            let parameters = operation["parameters"].as_array().cloned().unwrap_or_default();
            let of = |place: &str| -> Vec<String> {
                let here = parameters.iter().filter(|parameter| parameter["in"] == place);
                here.map(|parameter| parameter["name"].as_str().unwrap().to_owned()).collect()
            };
            assert_eq!(of("query"), endpoint.parameters(), "{method} {path}");
            let braced =
                path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
            assert_eq!(of("path"), braced.collect::<Vec<_>>(), "{method} {path}");
        }
        let attach = &document["paths"]["/v1/sessions"]["post"];
        assert!(attach["requestBody"].is_object() && Endpoint::Attach.success() == 201);
    }

    #[test]
    fn every_reference_leads_somewhere_and_everything_is_referred_to() {
        fn collect(value: &Value, found: &mut BTreeSet<String>) {
            match value {
                Value::Object(map) => {
                    found.extend(map.get("$ref").and_then(Value::as_str).map(str::to_owned));
                    map.values().for_each(|value| collect(value, found));
                }
                Value::Array(list) => list.iter().for_each(|value| collect(value, found)),
                _ => {}
            }
        }
        let document = read();
        let mut found = BTreeSet::new();
        collect(&document, &mut found);
        for reference in &found {
            let place = reference.strip_prefix('#').unwrap();
            assert!(document.pointer(place).is_some(), "{reference}");
        }
        for kind in ["schemas", "responses"] {
            for name in keys(&document["components"][kind]) {
                // A stream's events are described in words.
                let is_used = found.contains(&format!("#/components/{kind}/{name}"));
                assert!(is_used, "nobody refers to {name}");
            }
        }
    }

    #[test]
    fn what_may_be_sent_and_which_errors_come_are_those_that_the_program_knows() {
        let document = read();
        let schemas = &document["components"]["schemas"];
        let described = keys(&schemas["SessionSpec"]["properties"]);
        let error = serde_json::from_value::<SessionSpec>(json!({"no_such_key": 1})).unwrap_err();
        let error = error.to_string();
        let (_, list) = error.split_once("expected ").unwrap();
        let known: BTreeSet<String> =
            list.split('`').skip(1).step_by(2).map(str::to_owned).collect();
        assert_eq!(described, known);
        let codes = schemas["ApiError"]["properties"]["code"]["enum"].as_array().unwrap();
        let read = |code: &Value| -> ErrorCode { serde_json::from_value(code.clone()).unwrap() };
        let described: Vec<ErrorCode> = codes.iter().map(read).collect();
        let all = ROUTES.iter().flat_map(|(.., endpoint)| endpoint.errors()).chain(&ANY);
        assert!(all.clone().all(|code| described.contains(code)));
        let wrong = json!({"code": "no_such_code", "message": ""});
        let error = serde_json::from_value::<ApiError>(wrong).unwrap_err().to_string();
        let (_, list) = error.split_once("expected ").unwrap();
        assert_eq!(list.matches('`').count() / 2, codes.len(), "{error}");
    }
}
