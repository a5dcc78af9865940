//! One load object's answers: the worker's side, and what passes between it and the analyzer.

pub(crate) mod call;
pub(crate) mod call_form;
pub mod call_site;
pub(crate) mod called;
pub mod code_names;
pub mod entered;
pub mod entry_name;
pub(crate) mod flow;
pub(crate) mod flow_cache;
pub mod function_type;
pub mod load_object;
pub mod named_code;
pub(crate) mod pointed;
pub(crate) mod pointer_jump;
pub(crate) mod prototype;
pub mod question;
pub(crate) mod said_place;
pub mod site;
pub(crate) mod source_place;
pub mod static_data;
pub mod thread_access;
pub(crate) mod type_path;
pub(crate) mod undescribed;
pub(crate) mod way_in;
pub mod worker;
