//! Views of a session's samples that are more than sums, as JSON for clients.

use crate::annotation::document::AnnotationDocument;
use crate::annotation::model::Annotation;
use crate::annotation::subject::CodeSubject;
use crate::config::Names;
use crate::exit::{Failure, Kind};
use crate::layout::document::LayoutDocument;
use crate::layout::measure::measure;
use crate::layout::row;
use crate::measure::document as measurement;
use crate::measure::question::MeasuredSamples;
use crate::measure::report::MeasureReport;
use crate::measure::summary::MeasureOverview;
use crate::measure::view::MeasureView;
use crate::session::Source;
use crate::session::inspection::Inspector;
use crate::session::question::{Question, history, mistake};
use crate::sharing::document as sharing;
use crate::sharing::row::SharingRows;
use dataspace_analyzer::dwarf::layout::listing::FoundLayout;
use dataspace_analyzer::query::selection::SampleFilter;
use dataspace_analyzer::sharing::survey::LineSurvey;
use dataspace_analyzer::types::type_layout::TypeLayout;
use dataspace_proto::query::Query;
use dataspace_proto::view::{View, ViewRequest};
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Most cache lines that are told.
const MAX_LINES: usize = 1_000;

/// Cache lines that are told where nobody says how many.
const USUAL_LINES: usize = 100;

/// A session that clients look at.
pub(crate) struct Viewed<'a> {
    /// The session.
    pub(crate) source: &'a dyn Source,
    /// The index that is asked about code.
    pub(crate) inspector: &'a mut Inspector,
    /// Addresses stay untold.
    pub(crate) is_confined: bool,
}

impl Viewed<'_> {
    /// JSON of a view, for which `keys` are known besides those of the request.
    ///
    /// # Errors
    /// What is wrong with the request, or why there is no such view.
    pub(crate) fn view(
        &mut self,
        view: View,
        request: &[u8],
        keys: BTreeMap<String, String>,
    ) -> anyhow::Result<Vec<u8>> {
        let request: ViewRequest = serde_json::from_slice(request)
            .map_err(|error| Failure::new(Kind::Usage, error.to_string()))?;
        let query = request.query(keys);
        let mut question = Question::new(query.clone())?;
        if self.is_confined {
            question.confine()?;
        }
        let has_lines = question.has_lines();
        match view {
            View::Sharing => self.sharing(&request, &query),
            View::Code => self.code(&request, &query, has_lines),
            View::Members => self.members(&request, &query, has_lines),
            View::Measurement => self.measurement(&query),
        }
    }

    fn sharing(&self, request: &ViewRequest, query: &Query) -> anyhow::Result<Vec<u8>> {
        let survey = LineSurvey::new(query, false).map_err(|error| mistake(&error))?;
        let findings = self.source.history(true);
        let limit = request.limit.unwrap_or(USUAL_LINES).min(MAX_LINES);
        let rows = SharingRows::new(survey.of(history(&findings)?), limit);
        json(&match self.is_confined {
            true => sharing::without_addresses(&rows),
            false => sharing::of(&rows),
        })
    }

    fn code(
        &mut self,
        request: &ViewRequest,
        query: &Query,
        has_lines: bool,
    ) -> anyhow::Result<Vec<u8>> {
        let function = request.function.as_deref().map(CodeSubject::parse);
        let subject = function.unwrap_or(CodeSubject::Hottest);
        let filter = query.filter.as_ref().map(|text| SampleFilter::new(text, &query.keys));
        let mut filter = filter.transpose().map_err(|error| mistake(&error))?;
        let findings = self.source.history(subject.has_line() || has_lines);
        let of = (&findings, history(&findings)?);
        if let Some(span) = &query.span {
            let within = filter.unwrap_or_default().within(span, of.1);
            filter = Some(within.map_err(|error| mistake(&error))?);
        }
        let annotation =
            Annotation::find(of, &subject, filter.as_ref(), Names::Source, self.inspector)?;
        json(&AnnotationDocument::of(&annotation))
    }

    fn members(
        &self,
        request: &ViewRequest,
        query: &Query,
        has_lines: bool,
    ) -> anyhow::Result<Vec<u8>> {
        let object = request.object.as_deref().ok_or_else(|| {
            Failure::new(Kind::Usage, "object is missing: the descriptor of one that is listed")
        })?;
        let findings = self.source.history(has_lines);
        let (aggregate, layout) = findings.layout_around(object).ok_or_else(|| {
            let what =
                "nothing around this has members: layouts are of structures, classes and unions";
            Failure::new(Kind::Failed, what)
        })?;
        let measured = measure(&findings, layout, query)?;
        let rows = row::rows(layout, measured.figures.as_ref());
        let found = FoundLayout {
            name: Arc::clone(&aggregate.name),
            alias: None,
            unit: None,
            entry: None,
            virtual_bases: Box::default(),
            layout: TypeLayout::clone(layout),
        };
        json(&LayoutDocument::new(&found, &rows, &measured.notes))
    }

    fn measurement(&self, query: &Query) -> anyhow::Result<Vec<u8>> {
        let samples = MeasuredSamples::fitting(&self.source.snapshot().events, query)?;
        let view = MeasureView::default();
        let overview = MeasureOverview::of(self.source, samples, &view)?;
        let by = vec!["process".to_owned()];
        let answer = self.source.ask(&Question::new(overview.samples.query(by, false))?)?;
        let (run, details, threads, not_shown) = Default::default();
        let report = MeasureReport { overview, view, run, details, threads, answer, not_shown };
        json(&measurement::of(&report))
    }
}

fn json(document: &impl Serialize) -> anyhow::Result<Vec<u8>> {
    Ok(serde_json::to_vec(document)?)
}
