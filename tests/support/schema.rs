//! Holds answers to the schemas of the API's document: every key that is there has to be described.

use serde_json::Value;

/// What is wrong with `value` by `schema`, a part of `document`; nothing where all is well. Knows as much
/// of JSON Schema as the schemas of answers use, and fails on what it does not know.
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
                "description" | "required" | "additionalProperties" => {}
                "type" => {
                    let is_so = match rule.as_str().unwrap() {
                        "object" => value.is_object(),
                        "array" => value.is_array(),
                        "string" => value.is_string(),
                        "boolean" => value.is_boolean(),
                        "integer" => value.is_u64() || value.is_i64(),
                        "number" => value.is_number(),
                        "null" => value.is_null(),
                        other => panic!("what is {other}?"),
                    };
                    if !is_so {
                        self.wrong(at, format!("{value} is no {rule}"));
                    }
                }
                "minimum" if value.as_f64() < rule.as_f64() => {
                    self.wrong(at, format!("{value} < {rule}"));
                }
                "maximum" if value.as_f64() > rule.as_f64() => {
                    self.wrong(at, format!("{value} > {rule}"));
                }
                "minimum" | "maximum" => {}
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
                "anyOf" => {
                    let fits = |schema| faults(self.document, schema, value).is_empty();
                    if !rule.as_array().unwrap().iter().any(fits) {
                        self.wrong(at, format!("{value} is none of {rule}"));
                    }
                }
                "items" => {
                    for (idx, item) in value.as_array().into_iter().flatten().enumerate() {
                        self.check(rule, item, &format!("{at}[{idx}]"));
                    }
                }
                "properties" => self.check_keys(schema, value, at),
                other => panic!("what is {other}?"),
            }
        }
        if let (Some(rule), None) = (schema.get("additionalProperties"), schema.get("properties")) {
            for (key, value) in value.as_object().into_iter().flatten() {
                self.check(rule, value, &format!("{at}.{key}"));
            }
        }
    }

    fn wrong(&mut self, at: &str, what: String) {
        self.found.push(format!("{at}: {what}"));
    }

    fn check_keys(&mut self, schema: &Value, value: &Value, at: &str) {
        let Some(value) = value.as_object() else { return };
        let properties = &schema["properties"];
        let others = schema.get("additionalProperties").filter(|rule| rule.is_object());
        for (key, value) in value {
            match properties.get(key).or(others) {
                Some(schema) => self.check(schema, value, &format!("{at}.{key}")),
                None => self.found.push(format!("{at}.{key} is not described")),
            }
        }
        for key in schema["required"].as_array().into_iter().flatten() {
            if !value.contains_key(key.as_str().unwrap()) {
                self.found.push(format!("{at}.{key} is missing"));
            }
        }
    }
}
