//! The document that describes the API to programs (OpenAPI 3.1), made of the table of operations and of the
//! types that go over the wire.

use super::answer::{AnswerBody, JSON, json_bytes};
use super::endpoint::ROUTES;
use super::route::{ANY, Asked, Content, KEYS, Parameter, Route};
use bytes::Bytes;
use dataspace_proto::api::{self, ApiError, ErrorCode};
use hyper::Response;
use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{Schema, SchemaGenerator};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// The document.
pub(crate) async fn document(asked: Asked<'_>) -> Result<Response<AnswerBody>, ApiError> {
    Ok(json_bytes(asked.route.success, text()))
}

fn text() -> Bytes {
    static DOCUMENT: LazyLock<Bytes> =
        LazyLock::new(|| format!("{:#}\n", Description::new().document()).into());
    DOCUMENT.clone()
}

/// Collects the schemas that operations refer to.
struct Description {
    /// Of what clients send.
    requests: SchemaGenerator,
    /// Of what they get.
    answers: SchemaGenerator,
}

impl Description {
    fn new() -> Self {
        let settings = SchemaSettings::draft2020_12()
            .with(|settings| settings.definitions_path = "/components/schemas".into())
            .with_transform(RecursiveTransform(join_lines))
            .with_transform(RecursiveTransform(bound_numbers));
        let answers = settings.clone().with_transform(RecursiveTransform(leave_out_null));
        Self {
            requests: settings.for_deserialize().into_generator(),
            answers: answers.for_serialize().into_generator(),
        }
    }

    fn document(mut self) -> Value {
        let mut paths: BTreeMap<&str, Map<String, Value>> = BTreeMap::new();
        for route in &ROUTES {
            let method = route.method.as_str().to_lowercase();
            paths.entry(route.path).or_default().insert(method, self.operation(route));
        }
        let error = content(
            Content { kind: JSON, schema: SchemaGenerator::subschema_for::<ApiError> },
            &mut self.answers,
        );
        let mut schemas = self.answers.take_definitions(true);
        let responses = responses(&error, &schemas["ErrorCode"]);
        schemas.append(&mut self.requests.take_definitions(true));
        json!({
            "openapi": "3.1.0",
            "info": {
                "title": "dataspace",
                "version": api::VERSION,
                "summary": "The data objects that running programs spend their memory time on.",
                "description": "Over the Unix socket the kernel tells who asks; over TCP a request needs the \
                                token. HEAD is answered wherever GET is. Other methods get 405 with Allow, and \
                                what is no request of HTTP/1.1 gets 400, 414 or 431, all with an ApiError. \
                                Clients are to pass over keys that they do not know.",
                "license": {"name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0"},
            },
            "security": [{"token": []}],
            "paths": paths,
            "components": {
                "securitySchemes": {
                    "token": {"type": "http", "scheme": "bearer", "description": "Over TCP only."},
                },
                "responses": responses,
                "schemas": schemas,
            },
        })
    }

    fn operation(&mut self, route: &Route) -> Value {
        let keys = KEYS.iter().filter(|key| route.path.contains(&format!("{{{}}}", key.name)));
        let parameters: Vec<Value> = keys
            .map(|key| parameter(key, "path", true))
            .chain(route.query.iter().map(|one| parameter(one, "query", false)))
            .collect();
        let mut responses: BTreeMap<String, Value> = route
            .errors
            .iter()
            .chain(&ANY)
            .map(|code| {
                let place = format!("#/components/responses/{}", response_name(code.http_status()));
                (code.http_status().to_string(), json!({"$ref": place}))
            })
            .collect();
        let mut answer = content(route.answer, &mut self.answers);
        if let Some(other) = route.other_answer {
            answer[other.kind] = json!({"schema": (other.schema)(&mut self.answers)});
        }
        responses.insert(
            route.success.as_str().to_owned(),
            json!({"description": route.summary, "content": answer}),
        );
        let mut operation = json!({
            "operationId": route.name,
            "summary": route.summary,
            "responses": responses,
        });
        if let Some(description) = route.description {
            operation["description"] = description.into();
        }
        if !parameters.is_empty() {
            operation["parameters"] = parameters.into();
        }
        if let Some(request) = route.request {
            let content = content(request, &mut self.requests);
            operation["requestBody"] = json!({"required": true, "content": content});
        }
        operation
    }
}

fn parameter(parameter: &Parameter, place: &str, is_required: bool) -> Value {
    let Parameter { name, description, schema } = parameter;
    let mut value =
        json!({"name": name, "in": place, "description": description, "schema": schema()});
    if is_required {
        value["required"] = true.into();
    }
    value
}

fn content(content: Content, generator: &mut SchemaGenerator) -> Value {
    json!({content.kind: {"schema": (content.schema)(generator)}})
}

fn response_name(status: u16) -> String {
    format!("Error{status}")
}

/// The answers to what is refused, one for each status, with the meanings that the schema of [`ErrorCode`] gives.
fn responses(error: &Value, schema: &Value) -> BTreeMap<String, Value> {
    let mut meanings: BTreeMap<u16, Vec<String>> = BTreeMap::new();
    for one in schema["oneOf"].as_array().into_iter().flatten() {
        let code: Option<ErrorCode> = serde_json::from_value(one["const"].clone()).ok();
        let is_answered = |code: &ErrorCode| {
            ROUTES.iter().any(|route| route.errors.contains(code)) || ANY.contains(code)
        };
        if let (Some(code), Some(meaning)) = (code.filter(is_answered), one["description"].as_str())
        {
            meanings.entry(code.http_status()).or_default().push(meaning.to_owned());
        }
    }
    let response = |(status, meanings): (u16, Vec<String>)| {
        let mut response = json!({"description": meanings.join(" Or: "), "content": error});
        if status == ErrorCode::Unauthorized.http_status() {
            response["headers"] = json!({"WWW-Authenticate": {
                "description": "`Bearer realm=\"dataspace\"`",
                "required": true,
                "schema": {"type": "string"},
            }});
        }
        (response_name(status), response)
    };
    meanings.into_iter().map(response).collect()
}

/// Makes one line of a description: in the source it has several.
fn join_lines(schema: &mut Schema) {
    if let Some(Value::String(description)) = schema.get_mut("description") {
        *description = description.replace('\n', " ");
    }
}

/// Says of a number's type what validators know: a format is only a note to them.
fn bound_numbers(schema: &mut Schema) {
    if schema.get("format").is_some_and(|format| format == "uint32") {
        schema.ensure_object().entry("maximum").or_insert(u32::MAX.into());
    }
}

/// Forbids `null` in fields that may be left out: an answer has a value there, or no such field.
fn leave_out_null(schema: &mut Schema) {
    let required = schema.get("required").cloned().unwrap_or_default();
    let is_required =
        |name: &str| required.as_array().is_some_and(|names| names.iter().any(|one| one == name));
    let Some(Value::Object(fields)) = schema.get_mut("properties") else { return };
    for (name, field) in fields {
        let Some(field) = field.as_object_mut() else { continue };
        // A default is for those who read.
        field.remove("default");
        if is_required(name) {
            continue;
        }
        if let Some(Value::Array(types)) = field.get_mut("type") {
            types.retain(|one| one != "null");
            if let [only] = &mut types[..] {
                field["type"] = only.take();
            }
        }
        if let Some(Value::Array(mut choices)) = field.remove("anyOf") {
            choices.retain(|one| *one != json!({"type": "null"}));
            match &mut choices[..] {
                [Value::Object(only)] => field.append(only),
                _ => drop(field.insert("anyOf".to_owned(), choices.into())),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dataspace_proto::api::SessionSpec;
    use std::collections::BTreeSet;

    fn read() -> Value {
        serde_json::from_slice(&text()).unwrap()
    }

    fn keys(value: &Value) -> BTreeSet<String> {
        value.as_object().unwrap().keys().cloned().collect()
    }

    /// Method, path, parameters, body of the request, media type of the answer, statuses.
    const OPERATIONS: &str = "\
DELETE /v1/sessions/{session} (session) application/json 200 400 401 403 404 421 429
GET /metrics () text/plain; version=0.0.4; charset=utf-8 200 400 401 421 429
GET /v1/health () application/json 200 400 401 421 429
GET /v1/openapi.json () application/json 200 400 401 421 429
GET /v1/sessions () application/json 200 400 401 421 429
GET /v1/sessions/{session} (session) application/json 200 400 401 404 421 429
GET /v1/sessions/{session}/accounting (session) application/json 200 400 401 404 409 421 429
GET /v1/sessions/{session}/folded (session) text/plain; charset=utf-8 200 400 401 404 409 421 429
GET /v1/sessions/{session}/objects/{object} (session object) application/json 200 400 401 404 409 421 429
GET /v1/sessions/{session}/objects/{object}/layout (session object) application/json 200 400 401 404 409 421 429
GET /v1/sessions/{session}/pprof (session) application/octet-stream 200 400 401 404 409 421 429
GET /v1/sessions/{session}/snapshot (session) application/json 200 400 401 404 409 421 429
GET /v1/sessions/{session}/stream (session ?interval_ms) text/event-stream 200 400 401 404 421 429
POST /v1/sessions (?ends_unwatched) application/json application/json 201 400 401 403 408 409 413 421 422 429 503
POST /v1/sessions/{session}/code (session) application/json application/json 200 400 401 404 408 409 413 421 429
POST /v1/sessions/{session}/measurement (session) application/json application/json 200 400 401 404 408 409 413 421 429
POST /v1/sessions/{session}/members (session) application/json application/json 200 400 401 404 408 409 413 421 429
POST /v1/sessions/{session}/query (session ?format) application/json application/json text/csv; charset=utf-8; header=present 200 400 401 404 408 409 413 421 429
POST /v1/sessions/{session}/sharing (session) application/json application/json 200 400 401 404 408 409 413 421 429
";

    #[test]
    fn operations_have_the_parameters_and_statuses_that_clients_know() {
        let document = read();
        let mut operations = Vec::new();
        for (path, item) in document["paths"].as_object().unwrap() {
            for (method, operation) in item.as_object().unwrap() {
                let parameters = operation["parameters"].as_array().cloned().unwrap_or_default();
                let spelled = parameters.iter().map(|one| {
                    let name = one["name"].as_str().unwrap();
                    if one["in"] == "query" { format!("?{name}") } else { name.to_owned() }
                });
                let parameters = spelled.collect::<Vec<_>>().join(" ");
                let mut line = format!("{} {path} ({parameters})", method.to_uppercase());
                let responses = operation["responses"].as_object().unwrap();
                let success = responses.iter().find(|(status, _)| status.starts_with('2')).unwrap();
                for body in [&operation["requestBody"], success.1] {
                    let kinds = body["content"].as_object().into_iter().flatten();
                    kinds.for_each(|(kind, _)| line.extend([" ", kind]));
                }
                responses.keys().for_each(|status| line.extend([" ", status]));
                operations.push(line + "\n");
            }
        }
        operations.sort();
        assert_eq!(operations.concat(), OPERATIONS);
    }

    #[test]
    fn everything_is_described_in_one_line_without_the_marks_of_the_source() {
        fn check(value: &Value) {
            match value {
                Value::Object(map) => {
                    if let Some(Value::String(text)) = map.get("description") {
                        let is_plain =
                            !text.contains(['\n', '[', ']']) && text.ends_with(['.', '`']);
                        assert!(is_plain, "{text:?}");
                    }
                    map.values().for_each(check);
                }
                Value::Array(list) => list.iter().for_each(check),
                _ => {}
            }
        }
        let document = read();
        check(&document);
        for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
            assert!(schema["description"].is_string(), "{name}");
            for (field, schema) in schema["properties"].as_object().into_iter().flatten() {
                assert!(schema["description"].is_string(), "{name}.{field}");
            }
        }
    }

    #[test]
    fn answers_have_no_null_where_a_field_may_be_left_out() {
        let schemas = &read()["components"]["schemas"];
        let line = &schemas["ObjectLine"]["properties"];
        assert_eq!(line["parent_id"]["type"], json!(["integer", "null"]));
        assert_eq!(line["offset"]["type"], "integer");
        assert_eq!(
            schemas["FunctionSum"]["properties"]["scope"]["anyOf"][1],
            json!({"type": "null"})
        );
        let reference = |name: &str| json!(format!("#/components/schemas/{name}"));
        assert_eq!(
            schemas["Snapshot"]["properties"]["governance"]["$ref"],
            reference("Governance")
        );
        assert_eq!(schemas["LayoutLine"]["properties"]["metrics"]["$ref"], reference("Windows"));
        // What is sent may have it.
        assert_eq!(
            schemas["SessionSpec"]["properties"]["period"]["type"],
            json!(["integer", "null"])
        );
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
        let described: BTreeSet<ErrorCode> = schemas["ErrorCode"]["oneOf"]
            .as_array()
            .unwrap()
            .iter()
            .map(|code| serde_json::from_value(code["const"].clone()).unwrap())
            .collect();
        let wrong = json!({"code": "no_such_code", "message": ""});
        let error = serde_json::from_value::<ApiError>(wrong).unwrap_err().to_string();
        let (_, list) = error.split_once("expected ").unwrap();
        assert_eq!(list.matches('`').count() / 2, described.len(), "{error}");
    }
}
