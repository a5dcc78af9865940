//! Holds answers to the schemas of the API's document: every key that is there has to be described.

use serde_json::Value;

/// Finds what is wrong with `value` by `schema`, a part of `document`. Knows as much of JSON Schema as the
/// schemas of answers use, and fails on what it does not know.
pub(crate) fn faults(document: &Value, schema: &Value, value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    Check { document, found: &mut found }.check(schema, value, "$");
    found
}

struct Check<'a> {
    document: &'a Value,
    found: &'a mut Vec<String>,
}

impl Check<'_> {
    fn check(&mut self, schema: &Value, value: &Value, at: &str) {
        for (keyword, rule) in schema.as_object().unwrap() {
            match keyword.as_str() {
                // With `required`, below.
                "properties" | "additionalProperties" => {}
                "description" => {}
                "required" => {
                    for key in rule.as_array().unwrap() {
                        if value.get(key.as_str().unwrap()).is_none() {
                            self.found.push(format!("{at}.{key} is missing"));
                        }
                    }
                }
                "type" => {
                    let types = rule.as_array().map_or(std::slice::from_ref(rule), Vec::as_slice);
                    if !types.iter().any(|one| is_of_type(one.as_str().unwrap(), value)) {
                        self.wrong(at, format!("{value} is no {rule}"));
                    }
                }
                "format" if !value.is_null() && !is_of_format(rule.as_str().unwrap(), value) => {
                    self.wrong(at, format!("{value} is no {rule}"));
                }
                "minimum" if value.as_f64() < rule.as_f64() && !value.is_null() => {
                    self.wrong(at, format!("{value} < {rule}"));
                }
                "maximum" if value.as_f64() > rule.as_f64() => {
                    self.wrong(at, format!("{value} > {rule}"));
                }
                "format" | "minimum" | "maximum" => {}
                "const" if value != rule => self.wrong(at, format!("{value} is not {rule}")),
                "const" => {}
                "enum" if !rule.as_array().unwrap().contains(value) => {
                    self.wrong(at, format!("{value} is none of {rule}"));
                }
                "enum" => {}
                "$ref" => {
                    let place = rule.as_str().unwrap().strip_prefix('#').unwrap();
                    let meant = self.document.pointer(place).unwrap();
                    self.check(meant, value, at);
                }
                "anyOf" | "oneOf" => {
                    let fits = |schema: &&Value| faults(self.document, schema, value).is_empty();
                    let n_fitting = rule.as_array().unwrap().iter().filter(fits).count();
                    if n_fitting == 0 || (keyword == "oneOf" && n_fitting > 1) {
                        self.wrong(at, format!("{value} fits {n_fitting} of {rule}"));
                    }
                }
                "items" => {
                    for (idx, item) in value.as_array().into_iter().flatten().enumerate() {
                        self.check(rule, item, &format!("{at}[{idx}]"));
                    }
                }
                other => panic!("what is {other}?"),
            }
        }
        if schema.get("properties").or(schema.get("additionalProperties")).is_some() {
            self.check_keys(schema, value, at);
        }
    }

    fn wrong(&mut self, at: &str, what: String) {
        self.found.push(format!("{at}: {what}"));
    }

    fn check_keys(&mut self, schema: &Value, value: &Value, at: &str) {
        let others = schema.get("additionalProperties").filter(|rule| rule.is_object());
        for (key, value) in value.as_object().into_iter().flatten() {
            match schema["properties"].get(key).or(others) {
                Some(schema) => self.check(schema, value, &format!("{at}.{key}")),
                None => self.found.push(format!("{at}.{key} is not described")),
            }
        }
    }
}

fn is_of_type(name: &str, value: &Value) -> bool {
    match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "null" => value.is_null(),
        other => panic!("what is {other}?"),
    }
}

fn is_of_format(name: &str, value: &Value) -> bool {
    match name {
        "uint16" => value.as_u64().is_some_and(|value| u16::try_from(value).is_ok()),
        "uint32" => value.as_u64().is_some_and(|value| u32::try_from(value).is_ok()),
        "uint64" | "uint" => value.is_u64(),
        "int64" => value.is_i64(),
        "int32" => value.as_i64().is_some_and(|value| i32::try_from(value).is_ok()),
        "double" => value.is_number(),
        other => panic!("what is {other}?"),
    }
}
