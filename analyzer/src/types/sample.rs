//! Layouts for tests, made by hand.

use crate::types::layout::{AggregateKind, Layout, Member, ScalarKind, Shape};
use crate::types::type_expression::{Encoding, TypeExpression};
use std::sync::Arc;

pub(crate) fn scalar(name: &str, size: u64, kind: ScalarKind) -> Arc<Layout> {
    let encoding = match kind {
        ScalarKind::Float => Encoding::Other(gimli::DW_ATE_float.0),
        _ => Encoding::Integer,
    };
    let expression = TypeExpression::Base { name: name.into(), encoding, n_bytes: size };
    Arc::new(Layout::new(expression.into(), name.into(), size, Shape::Scalar(kind)))
}

pub(crate) fn number(name: &str, size: u64) -> Arc<Layout> {
    scalar(name, size, ScalarKind::Number)
}

pub(crate) fn member(name: &str, offset: u64, layout: &Arc<Layout>) -> Member {
    Member { name: name.into(), offset, bits: None, layout: Arc::clone(layout) }
}

pub(crate) fn aggregate(
    kind: AggregateKind,
    name: &str,
    size: u64,
    members: Vec<Member>,
) -> Arc<Layout> {
    let named = TypeExpression::Named { keyword: kind.keyword(), name: Some(name.into()) };
    let shape = Shape::Aggregate { kind, members: members.into() };
    Arc::new(Layout::new(named.into(), name.into(), size, shape))
}

/// A structure of members at offsets.
pub(crate) fn structure(
    name: &str,
    size: u64,
    members: &[(&str, u64, &Arc<Layout>)],
) -> Arc<Layout> {
    let members = members.iter().map(|(name, offset, layout)| member(name, *offset, layout));
    aggregate(AggregateKind::Structure, name, size, members.collect())
}
