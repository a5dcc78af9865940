//! The data that a report has inside: all that its views ask of their own accord.

use crate::file_source::FilePolicy;
use crate::session::Source;
use crate::session::inspection::Inspector;
use crate::session::question::{Question, condition_of};
use crate::worker::object;
use crate::worker::view::Viewed;
use dataspace_proto::api::{Origin, SessionLine, SessionState};
use dataspace_proto::object_detail::{ObjectDetail, ObjectLayout};
use dataspace_proto::query::{KeyValue, Query, QueryAnswer};
use dataspace_proto::snapshot::{ObjectLine, Snapshot};
use dataspace_proto::view::{View, ViewRequest};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Objects whose pages are in the file, those with the most samples.
const MAX_OBJECTS: usize = 300;

/// Objects whose lines and threads are.
const MAX_ASKED: usize = 100;

/// Functions whose code is.
const MAX_FUNCTIONS: usize = 25;

/// Data of a report; keys as the page reads them (`source.js`).
#[derive(Debug, Serialize)]
pub(crate) struct EmbeddedData {
    session: SessionLine,
    snapshot: Arc<Snapshot>,
    objects: BTreeMap<u32, ObjectDetail>,
    layouts: BTreeMap<u32, ObjectLayout>,
    members: BTreeMap<String, Value>,
    answers: Vec<EmbeddedAnswer>,
    sharing: Option<Value>,
    code: BTreeMap<String, Value>,
    measurement: Option<Value>,
}

/// A question, and its answer.
#[derive(Debug, Serialize)]
struct EmbeddedAnswer {
    question: Query,
    answer: QueryAnswer,
}

impl EmbeddedData {
    /// The data of a session that has ended. What cannot be had is left out: the page says so.
    ///
    /// # Errors
    /// Where the session keeps no samples.
    pub(crate) fn of(source: &dyn Source, files: FilePolicy) -> anyhow::Result<Self> {
        let findings = source.history(true);
        let snapshot = Arc::clone(&findings.snapshot);
        let mut inspector = Inspector::new(files);
        let mut viewed = Viewed { source, inspector: &mut inspector, is_confined: false };
        let mut view = |view: View, request: &ViewRequest| -> Option<Value> {
            let request = serde_json::to_vec(request).ok()?;
            let made = viewed.view(view, &request, BTreeMap::new()).ok()?;
            serde_json::from_slice(&made).ok()
        };
        let mut listed: Vec<&ObjectLine> = snapshot.objects.iter().collect();
        listed.sort_by_key(|object| std::cmp::Reverse(object.metrics.all.samples));
        listed.truncate(MAX_OBJECTS);
        let ids = listed.iter().map(|object| object.id);
        let objects = ids.clone().filter_map(|id| Some((id, object::detail(&findings, id)?)));
        let layouts = ids.filter_map(|id| Some((id, object::layout(&findings, id)?)));
        let with_layouts = listed.iter().filter(|it| findings.layouts.contains_key(&it.id));
        let members = with_layouts.filter_map(|it| {
            let object = it.object.to_string();
            let request = ViewRequest { object: Some(object.clone()), ..ViewRequest::default() };
            Some((object, view(View::Members, &request)?))
        });
        let (objects, layouts, members) = (objects.collect(), layouts.collect(), members.collect());
        let asked = questions(&listed).into_iter().map(Question::new);
        let asked = asked.collect::<Result<Vec<_>, _>>()?;
        let answered = asked.iter().zip(source.ask_all(&asked)?);
        let answers: Vec<EmbeddedAnswer> = answered
            .map(|(asked, answer)| EmbeddedAnswer { question: asked.query.clone(), answer })
            .collect();
        let named = functions(&answers).take(MAX_FUNCTIONS).filter_map(|function| {
            let request =
                ViewRequest { function: Some(function.clone()), ..ViewRequest::default() };
            Some((function, view(View::Code, &request)?))
        });
        let code = named.collect();
        let sharing = view(View::Sharing, &ViewRequest::default());
        let measurement = view(View::Measurement, &ViewRequest::default());
        let session = session_line(&snapshot);
        Ok(Self {
            session,
            objects,
            layouts,
            members,
            answers,
            sharing,
            code,
            measurement,
            snapshot,
        })
    }
}

fn session_line(snapshot: &Snapshot) -> SessionLine {
    SessionLine {
        id: 1,
        name: None,
        origin: Origin::Request,
        uid: 0,
        state: SessionState::Ended,
        detail: None,
        target: snapshot.target.description.clone(),
        events: snapshot.events.iter().map(|event| event.name.clone()).collect(),
        n_attached: 1,
    }
}

/// The questions that the page asks where nothing is filtered: `OWN_QUESTIONS` of `source.js`.
fn questions(objects: &[&ObjectLine]) -> Vec<Query> {
    let question = |by: &[&str], limit: usize, filter: Option<String>| Query {
        by: by.iter().map(|key| (*key).to_owned()).collect(),
        filter,
        limit: Some(limit),
        ..Query::default()
    };
    let mut questions = vec![
        question(&["second"], 10_000, None),
        question(&["function"], 100, None),
        question(&["reason", "module", "function"], 200, Some("reason != null".to_owned())),
    ];
    for object in objects.iter().take(MAX_ASKED) {
        let of_object = Some(condition_of(object));
        questions.push(question(&["line", "function"], 50, of_object.clone()));
        questions.push(question(&["thread", "comm"], 50, of_object));
    }
    questions
}

/// Functions with the most samples.
fn functions(answers: &[EmbeddedAnswer]) -> impl Iterator<Item = String> {
    let of_functions = answers.iter().filter(|it| it.question.by == ["function"]);
    let rows = of_functions.flat_map(|it| &it.answer.rows);
    rows.filter_map(|row| match row.key.first() {
        Some(KeyValue::Text(function)) => Some(function.clone()),
        _ => None,
    })
}
